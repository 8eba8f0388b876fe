"""The worker process that a supervisor looks after: its pipe, its deadline, its end."""

import os
import signal
from collections.abc import Mapping, Sequence
from uuid import uuid4

from workers.clock import boottime
from workers.protocol import FD_VARIABLE, STOP, WORKER_VARIABLE, Told
from workers.supervision import spawn
from workers.supervision.events import say
from workers.supervision.stops import Stops

DISBELIEF = 0.5  # seconds that a passed deadline must stay the last word: after a thaw the worker speaks up first
OVERSLEPT = 0.3  # seconds of a wait that was too long: this process was stopped itself, and perhaps the worker too
DISBELIEFS = 5  # after so many the machine is too slow to go on doubting
PIPE = 2**20  # bytes: the most that a pipe can hold; what was in it when a look began is then read
UNTOLD_GRACE = (30.0, 0.0)  # seconds, when a worker did not get as far as to say it: no handler runs


class Charge:
    """One worker process. Raises OSError when it can't be started.

    Its id is made here: what stands in the environment from the exec on, nothing that is forked can shake off.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.worker_id = str(uuid4())
        self.told = Told()
        self.status: int | None = None
        self.started = boottime()
        self.closed_at: float | None = None
        self._stops = Stops()
        self._wrong_said = False
        self._doubt: float | None = None  # since when a passed deadline is doubted
        self._doubts = 0
        self._fd, write = os.pipe()
        os.set_blocking(self._fd, False)
        try:
            ours = {WORKER_VARIABLE: self.worker_id, FD_VARIABLE: str(write)}
            self.pid = spawn.program(command, {**environment, **ours}, write)
        except OSError:
            self.forget()
            raise
        finally:
            os.close(write)

    @property
    def pipes(self) -> list[int]:
        """What to wait for."""
        return [] if self.closed_at is not None else [self._fd]

    @property
    def code(self) -> int:
        """The exit code, or minus the signal that ended it. Once `status` is set."""
        assert self.status is not None  # noqa: S101  (asked of one that has ended)
        return os.waitstatus_to_exitcode(self.status)

    @property
    def end(self) -> dict[str, object]:
        """The same for the log: `code`, or the name of the `signal`."""
        if self.code >= 0:
            return {"code": self.code}
        try:
            return {"signal": signal.Signals(-self.code).name}
        except ValueError:  # one of the real-time signals
            return {"signal": -self.code}

    @property
    def grace(self) -> float:
        """Seconds that it takes to stop in order."""
        return sum(self.told.grace or UNTOLD_GRACE)

    @property
    def kill_grace(self) -> float:
        """The part of them that its handlers have after they were asked to end."""
        return (self.told.grace or UNTOLD_GRACE)[1]

    def send(self, number: int) -> None:
        """Signal it. Its pid is its own until its status was taken."""
        if self.status is None:
            os.kill(self.pid, number)

    def ask(self, times: int) -> None:
        """Tell it to stop, so many times more, as soon as `pass_on` is called."""
        self._stops.ask(times)

    def pass_on(self, now: float) -> None:
        """Send the next STOP that is due."""
        if self._stops.take(now):
            self.send(STOP)

    def listen(self) -> None:
        """Read all that the pipe holds."""
        left = PIPE
        while self.closed_at is None and left > 0:
            try:
                data = os.read(self._fd, 2**16)
            except BlockingIOError:
                break
            if not data:
                self.closed_at = boottime()
            left -= len(data)
            self.told.hear(data)
        if self.told.wrong and not self._wrong_said:
            self._wrong_said = True
            say("supervisor.line_unreadable", "warning", pid=self.pid)

    def seconds_left(self, now: float) -> float:
        """Until it has to be looked at; endless when nothing is due."""
        left = self._stops.seconds_left(now)
        if self.told.kill_at is not None:
            left = min(left, (self.told.kill_at if self._doubt is None else self._doubt + DISBELIEF) - now)
        return max(0.0, left)

    def passed(self, now: float, overslept: float) -> bool:
        """Whether its deadline has passed and is to be believed. Ask right after `listen`.

        Whoever was stopped together with the worker finds old words in the pipe. So the first look only begins a
        doubt, and a wait that was too long begins it anew.
        """
        if self.told.kill_at is None or now < self.told.kill_at:
            self._doubt, self._doubts = None, 0
            return False
        if self._doubt is None or (overslept > OVERSLEPT and self._doubts < DISBELIEFS):
            self._doubt = now
            self._doubts += 1
            return False
        return now >= self._doubt + DISBELIEF

    def forget(self) -> None:
        """Close the pipe."""
        os.close(self._fd)
