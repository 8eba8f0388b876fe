"""When one more child would help with what waits, and when it would only wait like the others.

A child costs a start, memory, and a place in the processor's caches. Where children end their jobs as quickly as the
pool's thread can give them others, none is added, as long as nothing waits for too long. Nor is another woken: to sleep
and to be woken takes a child longer than a job of no length, so such jobs are given to a busy one ahead of its need.
"""

import math
from collections.abc import Iterable

from workers.isolation.handle import Child

FEW = 4  # children that are made whenever something waits
PACE = 0.0002  # seconds, about what the pool's thread has to do for a job: as long keeps it one child more at work
FLOW = 0.02  # seconds within which a job that is short for so many children is followed by the end of another
KNOWN = 0.9  # of that: as long nobody looks again
STREAM = 1.0  # seconds after such a job within which what comes is taken for the like
AHEAD = 0.002  # seconds: a child that has less to do than that gets one more job
MOST = 8  # jobs that a child has at once
LONG = 0.01  # seconds that a job runs until those behind it are given to others
NEWS = 1 / 8  # what a job's length counts for in what is expected of its type
BEHIND = 0.001  # seconds that a job may wait, besides FLOW, for each that waits before it


class Pace:
    """What was seen of the children. All times are those of the monotonic clock.

    `flows_until`: until then a child that is free soon is better than one more, as far as what ended can tell."""

    def __init__(self) -> None:
        self.flows_until = 0.0
        self._stream_until = 0.0
        self._lengths: dict[str, float] = {}  # seconds, by type: of its jobs in the mean, the last ones above all
        self._length = 0.0  # seconds: of the shortest of the last jobs, for others are kept from the processor

    def length(self, type_: str) -> float:
        """Seconds that a job of this type is expected to take of a child; infinity: nothing is known of the type."""
        return self._lengths.get(type_, math.inf) + PACE

    def takes(self, child: Child, count: int, now: float) -> bool:
        """Whether a child of `count` has room for one more job. As long as children are few more are made instead."""
        docket = child.docket
        if child.leaving:
            return False
        if not docket.jobs:
            return True
        if docket.last or not child.begun or count < FEW:
            return False
        if len(docket.jobs) >= MOST or now - docket.since >= LONG:
            return False
        return sum(given.length for given in docket.jobs) < AHEAD

    def freed(self, child: Child, children: Iterable[Child], count: int) -> None:
        """A child has ended a job that was not its last; `children`: all, of which there are `count`."""
        now = child.idle_since
        lasted = min(child.lasted, FLOW)
        before = self._lengths.get(child.type, lasted)
        self._lengths[child.type] = before + (lasted - before) * NEWS
        self._length = min(child.lasted, 2 * self._length + PACE)
        if not self._enough(count) or self.flows_until - now > KNOWN * FLOW:  # (to count those that turn costs more)
            return
        if self._enough(sum(self._turns(one, now) for one in children)):
            self.flows_until = now + FLOW
            self._stream_until = now + STREAM

    def came(self, now: float) -> None:
        """Jobs have come while a child is idle."""
        if now < self._stream_until:
            self.flows_until = now + FLOW

    def due(self, now: float, before: int) -> float:
        """When one that comes now, with so many that wait before it, has waited too long, whatever others do: fewer
        than about a thousand jobs a second are begun with."""
        return now + FLOW + max(0, before) * BEHIND

    def _enough(self, children: int) -> bool:
        return self._length < (children - FEW) * PACE

    def _turns(self, child: Child, now: float) -> bool:
        """Whether it is free, or will be as soon as others are. (Who has a short job may get the processor late.)"""
        if child.execution is None:
            return not child.leaving
        return not child.docket.last and not child.leaving and now - child.docket.since < FLOW + self._length
