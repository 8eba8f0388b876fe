"""One supervisor: starts a worker, passes requests to stop on, keeps its deadlines, clears up after it, starts anew."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence

from workers.clock import boottime
from workers.protocol import EXIT_LEFT, STOP, VARIABLES
from workers.supervision import spawn
from workers.supervision.below import LOOK, Below
from workers.supervision.charge import Charge
from workers.supervision.events import say
from workers.supervision.pause import STEADY, Pause
from workers.supervision.signals import Signals

MARGIN = 10.0  # seconds beyond its grace and its handlers' after which a worker that was asked to stop is killed
HURRY = 20.0  # seconds beyond its handlers' grace for a worker that was asked to return everything at once
SILENCE = 2.0  # seconds after which a worker that closed its line, and lives, is asked to stop
KILLING = 10.0  # seconds for what was killed to be gone
LAST_KILLING = 30.0  # the same, before the jobs of what was killed are given back
RELEASE_TIME = 60.0  # seconds for the program that gives jobs back; after that their leases return them
MOST_OWED = 5  # workers that crashed one after the other, whose jobs are given back at a stop


class Supervisor:
    """`command` is the worker's program; `release`, with a worker's id added, gives back what that worker left.

    `tell_init`: for one below an init, called when a worker takes work for the first time.
    """

    def __init__(
        self,
        command: Sequence[str],
        release: Sequence[str],
        environment: Mapping[str, str],
        tell_init: Callable[[], None] | None = None,
    ) -> None:
        self._command = command
        self._release_command = release
        # (A worker may be started by a handler of another one.)
        self._environment = {name: value for name, value in environment.items() if name not in VARIABLES}
        self._signals = Signals(under_init=tell_init is not None)
        self._tell_init = tell_init
        spawn.release_signals()
        self._below = Below()
        self._pause = Pause()
        self._was_ready = False
        self._owed: list[str] = []  # workers that crashed, whose jobs no successor has taken back for certain

    def run(self) -> int:
        """Until somebody asks to stop, or the worker can't start. Returns the exit code."""
        while not self._signals.asked:
            lived, charge = 0.0, self._start()
            if charge is not None:
                self._watch(charge)
                lived = boottime() - charge.started
                charge.forget()
                if not (self._was_ready or self._signals.asked) and charge.code > 0:
                    self._below.kill(KILLING)
                    say("supervisor.worker_failed", "error", pid=charge.pid, worker=charge.told.worker, **charge.end)
                    return charge.code  # it has said what is wrong
                said = "info" if charge.code in (0, EXIT_LEFT) else "error"
                say("supervisor.worker_ended", said, pid=charge.pid, worker=charge.told.worker, **charge.end)
                dead = self._below.kill(KILLING)
                if self._signals.asked:
                    return self._stop(charge)
                self._after(charge, dead)
            self._rest(self._pause.after(lived))
        return self._ended(0 if self._give_back(*self._owed, lost=True) else EXIT_LEFT)

    def _start(self) -> Charge | None:
        try:
            charge = Charge(self._command, self._environment)
        except OSError as error:  # no room for a process just now
            say("supervisor.start_failed", "error", error=str(error))
            return None
        say("supervisor.worker_started", pid=charge.pid)
        return charge

    def _watch(self, charge: Charge) -> None:
        """Until the worker has ended and is reaped."""
        limit: float | None = None  # when it is killed, after it was asked to stop
        killed = False
        expected = boottime()
        while True:
            charge.listen()
            charge.status = self._below.reap().get(charge.pid)
            if charge.status is not None:
                charge.listen()  # its last words
            if charge.told.ready and not self._was_ready:
                self._was_ready = True
                if self._tell_init is not None:
                    self._tell_init()
            if charge.status is not None:
                return
            now = boottime()
            limit = self._pass_on(charge, now, limit)
            if charge.passed(now, overslept=now - expected) and not killed:
                say("supervisor.deadline_passed", "critical", pid=charge.pid, worker=charge.told.worker)
                killed = True
            elif limit is not None and now >= limit and not killed:
                say("supervisor.grace_passed", "error", pid=charge.pid, worker=charge.told.worker)
                killed = True
            if killed:
                charge.send(signal.SIGKILL)
                self._below.kill(1.0)
            if charge.told.ready and now - charge.started > STEADY:
                self._owed.clear()  # it has taken back what they left
            self._below.look([charge.pid], charge.worker_id)
            due = [LOOK] if killed else [LOOK, charge.seconds_left(now), LOOK if limit is None else limit - now]
            expected = now + max(0.0, min(due))
            self._signals.wait(expected - boottime(), charge.pipes)

    def _pass_on(self, charge: Charge, now: float, limit: float | None) -> float | None:
        """Send on what was asked. Returns when the worker is to be killed, if at all."""
        if fresh := self._signals.take():
            asked = self._signals.asked
            say("supervisor.stopping", pid=charge.pid, asked=asked, grace_seconds=charge.grace)
            charge.ask(fresh)
            limit = now + charge.grace + MARGIN if limit is None else limit
            limit = min(limit, now + charge.kill_grace + HURRY) if asked > 1 else limit
        elif limit is None and charge.closed_at is not None and now >= charge.closed_at + SILENCE:
            # Nobody knows its deadlines any more: it has to make room for one that tells them.
            say("supervisor.line_closed", "error", pid=charge.pid)
            charge.ask(1)
            limit = now + charge.grace + MARGIN
        charge.pass_on(now)
        return limit

    def _after(self, charge: Charge, dead: bool) -> None:
        """The worker ended by itself: its successor takes back what it left, or, without one, this process does."""
        if charge.told.worker is None or charge.code == 0:
            return
        if charge.code == EXIT_LEFT and dead:  # an end in order: what was left is no loss
            self._give_back(charge.told.worker)
        else:
            self._owed = [*self._owed, charge.told.worker][-MOST_OWED:]

    def _rest(self, seconds: float) -> None:
        """Wait before the next start; a request to stop ends the wait."""
        say("supervisor.restarting", seconds=seconds)
        end = boottime() + seconds
        while not self._signals.asked and (now := boottime()) < end:
            self._below.reap()
            self._below.look([])
            self._signals.wait(min(LOOK, end - now))

    def _stop(self, charge: Charge) -> int:
        """The worker ended after a request to stop: give back what it left, and say how it went."""
        code, worker = charge.code, charge.told.worker
        self._give_back(*self._owed, lost=True)
        released = worker is None or code == 0 or self._give_back(worker)
        if released and (code == EXIT_LEFT or (code == -STOP and worker is None)):
            code = 0  # left running, killed and given back; or asked before it had begun
        return self._ended(spawn.shell_code(code))

    def _give_back(self, *workers: str, lost: bool = False) -> bool:
        """Run the release for each. Only what is proven dead may be given back: False when it is not, or it failed.

        `lost`: they crashed, and their jobs are charged for that, as a successor would.
        """
        if workers and not self._below.kill(LAST_KILLING):
            say("supervisor.not_released", "error", workers=workers)
            return False
        rule = ["--lost"] if lost else []
        codes = [self._run([*self._release_command, worker, *rule]) for worker in workers]
        for worker, code in zip(workers, codes, strict=True):
            say("supervisor.released", "info" if code == 0 else "error", worker=worker, code=code)
        return not any(codes)

    def _run(self, command: Sequence[str]) -> int:
        """Run a program to its end; it is killed when that takes too long. Returns its code, as a shell says it."""
        try:
            pid = spawn.program(command, self._environment)
        except OSError as error:
            say("supervisor.start_failed", "error", error=str(error))
            return spawn.EXIT_NO_PROGRAM
        limit = boottime() + RELEASE_TIME
        while True:
            status = self._below.reap().get(pid)
            if status is not None:
                return spawn.shell_code(os.waitstatus_to_exitcode(status))
            if boottime() >= limit:
                os.kill(pid, signal.SIGKILL)
            self._signals.wait(LOOK)

    @staticmethod
    def _ended(code: int) -> int:
        say("supervisor.ended", code=code)
        return code
