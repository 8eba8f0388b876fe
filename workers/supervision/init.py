"""The small init above several supervisors, or above one that may not be the process which was started: process 1 of a
container, or one that has children already.

It forks the supervisors, passes requests to stop on, reaps whatever comes, starts a supervisor anew that was killed or
whose worker failed before it was ready, and ends when all have ended. What other programs leave to this process is
reaped, never killed.
"""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

from workers import tree
from workers.clock import boottime
from workers.protocol import STOP
from workers.supervision import spawn
from workers.supervision.events import say
from workers.supervision.pause import Pause
from workers.supervision.signals import Signals
from workers.supervision.stops import Stops

LOOK = 60.0  # seconds between two looks when nothing is due: a signal or a word ends the wait
Body = Callable[[Callable[[], None]], int]


class _Place:
    """One supervisor, and the one that takes its place."""

    def __init__(self, number: int, body: Body) -> None:
        self.number = number
        self.body = body
        self.pid: int | None = None
        self.code: int | None = None  # it has ended, for good
        self.failed = 0  # the exit code of a worker that has not been ready here so far
        self.pause = Pause()
        self.started = self.due = 0.0


class Init:
    """`bodies`: each runs one supervisor, in a process of its own, and returns its exit code. It is given what to call
    when its worker takes work for the first time."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self._places = [_Place(number, body) for number, body in enumerate(bodies)]
        self._signals = Signals()
        self._stops = Stops()
        self._was_ready = False
        self._read, self._write = os.pipe()  # a byte is the number of a place that is ready
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def run(self) -> int:
        """Until all supervisors have ended. Returns the worst of their exit codes."""
        while True:
            now = boottime()
            ended = dict(tree.reap())
            self._hear()
            for place in self._places:
                if place.pid in ended:
                    self._ended(place, os.waitstatus_to_exitcode(ended[place.pid]), now)
            self._pass_on(now)
            for place in self._waiting():
                if self._signals.asked:
                    place.code = place.failed
                elif now >= place.due:
                    self._start(place, now)
            if all(place.pid is None and (place.code is not None or self._held(place)) for place in self._places):
                return max(place.failed if place.code is None else place.code for place in self._places)
            due = [place.due - now for place in self._waiting()]
            self._signals.wait(min([LOOK, self._stops.seconds_left(now), *due]), [self._read])

    def _held(self, place: _Place) -> bool:
        """Where no worker was ever ready, one that failed will most likely fail again: the others' end is awaited."""
        return place.failed > 0 and not self._was_ready

    def _waiting(self) -> list[_Place]:
        return [p for p in self._places if p.pid is None and p.code is None and not self._held(p)]

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            for number in os.read(self._read, 4096):
                self._was_ready, self._places[number].failed = True, 0

    def _start(self, place: _Place, now: float) -> None:
        def ready() -> None:
            with suppress(OSError):
                os.write(self._write, bytes([place.number]))

        def body() -> int:
            self._signals.close()
            os.close(self._read)
            return place.body(ready)

        try:
            place.pid = spawn.fork(body)
        except OSError as error:  # no room for a process just now
            say("supervisor.start_failed", "error", error=str(error))
            place.due = now + place.pause.after(0.0)
        else:
            place.started = now

    def _ended(self, place: _Place, code: int, now: float) -> None:
        place.pid = None
        if code == 0 or self._signals.asked:
            place.code = 0 if code == -STOP else spawn.shell_code(code)
            return
        # By itself it ends only when it is killed, or when its worker failed before it was ever ready: another one's
        # success says that the fault may pass.
        place.failed = max(0, code)
        seconds = place.pause.after(now - place.started)
        place.due = now + seconds
        how = {"code": code} if code > 0 else {"signal": -code}
        again = {"seconds": None if self._held(place) else seconds}
        say("supervisor.lost", "error", number=place.number + 1, **how, **again)

    def _pass_on(self, now: float) -> None:
        self._stops.ask(self._signals.take())
        if self._stops.take(now):
            for place in self._places:
                if place.pid is not None:
                    os.kill(place.pid, signal.Signals(STOP))
