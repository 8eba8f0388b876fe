"""The jobs of a child as its worker keeps them: what it runs, what was given to it ahead, and their time.

A job that is not begun can be taken back at any moment (`lane`), and then nothing of it concerns this child any more.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from jobs.conf import conf
from workers.execution import Execution
from workers.isolation import frames
from workers.isolation.lane import PACKET, Lane
from workers.leases import CANCEL_GRACE, Interrupt


@dataclass(eq=False, slots=True)
class Given:
    """A job that a child was given at an instant of the monotonic clock: `number` is the child's of it, `due` the
    pool's word when it has waited too long, `length` the seconds that it is expected to take; `frame` is empty of one
    that is too large to be sent a second time."""

    number: int
    execution: Execution
    due: float
    length: float
    at: float
    frame: bytes
    killing: asyncio.TimerHandle | None = None  # it was asked to stop


class Docket:
    """`jobs` is what the child has: the first runs, or is the next that does; `number` counts what was sent to it.

    `say` tells its watchdog something, `kill` ends it. Belongs to the pool's loop.
    """

    def __init__(
        self, lane: Lane, loop: asyncio.AbstractEventLoop, say: Callable[[str], None], kill: Callable[[], None]
    ) -> None:
        self.jobs: deque[Given] = deque()
        self.number = 0
        self.last = False  # what it was given is all that it will be given
        self.since = 0.0  # on the monotonic clock: when the first became that
        self._lane = lane
        self._loop = loop
        self._say = say
        self._kill = kill
        self._limit: asyncio.TimerHandle | None = None
        self._stopped = False  # no time is counted any more

    def give(self, execution: Execution, *, last: bool = False, due: float = -math.inf, length: float = 0.0) -> bool:
        """Send this, to be run when the others are done; `last`: and nothing after it. Whether it was sent: what is
        large, or finds no room, can only be to a child that has nothing."""
        held, now = execution.held, time.monotonic()
        self.number += 1
        number = self.number
        held.extended = lambda deadline: self._extended(number, deadline)
        deadline = held.deadline
        frame = frames.pack_job(frames.Job(number, held.claim, deadline, execution.ctx.reserve_folder(), last))
        large = len(frame) > PACKET
        given = Given(number, execution, due, math.inf if large else length, now, b"" if large else frame)
        if self.jobs and not self._lane.send_ahead(frame):
            _let_go(given)
            return False
        self.jobs.append(given)
        if len(self.jobs) == 1:
            self._lane.send(frame)
            self.last = last
            self._first(now)
        return True

    def take_back(self, *, dead: bool = False, but_first: bool = False) -> list[Given]:
        """Take back all that the child has not begun, in its order; `dead`: it can't begin it any more, `but_first`:
        what it would begin with stays."""
        numbers = self._lane.take_back(dead=dead)
        if not numbers:
            return []
        first = self.jobs[0] if self.jobs else None
        back = [given for given in self.jobs if given.number in numbers]
        for given in back:
            self.jobs.remove(given)
        if back and but_first and not self.jobs:
            self.jobs.append(back.pop(0))
            self._lane.send(self.jobs[0].frame)
        for given in back:
            _let_go(given)
        if not self.jobs:
            self.last = False
        elif self.jobs[0] is not first:  # which the child has not taken, though it took the next in that moment
            self._first(time.monotonic())
        return back

    def ended(self, now: float) -> Given:
        """The first is done: the time of the next begins."""
        given = self.jobs.popleft()
        if given.killing is not None:
            given.killing.cancel()
        if self.jobs:
            self._first(now)
        return given

    def ask(self, execution: Execution, why: Interrupt) -> None:
        """If the child has this, ask its handler to stop, and kill the child after the grace; at once when the lease is
        lost."""
        given = next((given for given in self.jobs if given.execution is execution), None)
        if given is None:
            return
        if why is Interrupt.LOST:
            self._kill()
            return
        self._say(f"ask {given.number} {why} {execution.limit!r}")
        grace = conf().worker.kill_grace + (CANCEL_GRACE if why is Interrupt.CANCELLED else 0.0)
        given.killing = given.killing or self._loop.call_later(grace, self._kill)

    def end(self) -> None:
        """Nothing more will come: the child ends when it has nothing."""
        self._lane.end()

    def stop_timers(self) -> None:
        """No job's time is counted any more."""
        self._stopped = True
        for timer in (self._limit, *(given.killing for given in self.jobs)):
            if timer is not None:
                timer.cancel()
        self._limit = None

    def close(self) -> None:
        """Give up all that belongs to the child."""
        self.stop_timers()
        self._lane.close()

    def _extended(self, number: int, deadline: float) -> None:
        """In the heartbeat's thread."""
        with suppress(RuntimeError):  # the loop has ended, and the child with it
            self._loop.call_soon_threadsafe(self._extend, number, deadline)

    def _extend(self, number: int, deadline: float) -> None:
        if any(given.number == number for given in self.jobs):
            self._say(f"extend {number} {deadline!r}")

    def _first(self, now: float) -> None:
        """Another job is the first: its time begins. One timer serves all, for few come to the end of their time."""
        self.since = now
        if self._stopped:
            return
        due = now + self.jobs[0].execution.limit
        if self._limit is None or self._limit.when() > due:
            if self._limit is not None:
                self._limit.cancel()
            self._limit = self._loop.call_at(due, self._time_out)

    def _time_out(self) -> None:
        self._limit = None
        if not self.jobs:
            return
        execution = self.jobs[0].execution
        due = self.since + execution.limit
        if due > self._loop.time():
            self._limit = self._loop.call_at(due, self._time_out)
        else:
            execution.time_out()


def _let_go(given: Given) -> None:
    """It is this child's no more, which has made nothing of what its folder would have been."""
    given.execution.held.extended = None
    if given.killing is not None:
        given.killing.cancel()
    given.execution.ctx.give_up_folder()
