"""The small init above several supervisors, or above one where it is process 1 of a container.

It forks the supervisors, passes requests to stop on, reaps whatever comes, starts a supervisor that was killed again,
and ends when all have ended. What a container's other programs leave to process 1 is reaped, never killed.
"""

import os
import signal
from collections.abc import Callable, Sequence

from workers import tree
from workers.clock import boottime
from workers.protocol import STOP
from workers.supervision import spawn
from workers.supervision.events import say
from workers.supervision.pause import Pause
from workers.supervision.signals import Signals

LOOK = 60.0  # seconds between two looks when nothing is due: a signal ends the wait
APART = 0.2  # seconds between two STOPs: one that is still pending would swallow the next


class _Place:
    """One supervisor, and the one that takes its place when it is killed."""

    def __init__(self, body: Callable[[], int]) -> None:
        self.body = body
        self.pid: int | None = None
        self.code: int | None = None  # it has ended, for good
        self.pause = Pause()
        self.started = self.due = 0.0


class Init:
    """`bodies`: each runs one supervisor, in a process of its own, and returns its exit code."""

    def __init__(self, bodies: Sequence[Callable[[], int]]) -> None:
        self._places = [_Place(body) for body in bodies]
        self._signals = Signals()
        self._unsent, self._send_due = 0, 0.0

    def run(self) -> int:
        """Until all supervisors have ended. Returns the worst of their exit codes."""
        while True:
            now = boottime()
            for pid, status in tree.reap():
                for place in self._places:
                    if place.pid == pid:
                        self._ended(place, os.waitstatus_to_exitcode(status), now)
            self._pass_on(now)
            waiting = [place for place in self._places if place.pid is None and place.code is None]
            for place in waiting:
                if self._signals.asked:
                    place.code = 0
                elif now >= place.due:
                    self._start(place, now)
            codes = [place.code for place in self._places]
            if all(code is not None for code in codes):
                return max(code for code in codes if code is not None)
            due = [place.due - now for place in waiting if place.pid is None and place.code is None]
            if self._unsent:
                due.append(self._send_due - now)
            self._signals.wait(min([LOOK, *due]))

    def _start(self, place: _Place, now: float) -> None:
        def body() -> int:
            self._signals.close()
            return place.body()

        try:
            place.pid = spawn.fork(body)
        except OSError as error:  # no room for a process just now
            say("supervisor.start_failed", "error", error=str(error))
            place.due = now + place.pause.after(0.0)
        else:
            place.started = now

    def _ended(self, place: _Place, code: int, now: float) -> None:
        place.pid = None
        if code >= 0 or self._signals.asked:
            place.code = code if code >= 0 else 0 if code == -STOP else 128 - code
            return
        seconds = place.pause.after(now - place.started)
        place.due = now + seconds
        say("supervisor.lost", "error", signal=-code, seconds=seconds)

    def _pass_on(self, now: float) -> None:
        self._unsent += self._signals.take()
        if self._unsent and now >= self._send_due:
            self._unsent, self._send_due = self._unsent - 1, now + APART
            for place in self._places:
                if place.pid is not None:
                    os.kill(place.pid, signal.Signals(STOP))
