"""Reconciliation: after a broker that lost messages, the jobs that nobody would ever start are announced again.

The leader's. Every step is safe when two do it, and when the guess was wrong: a message too many is dropped by its
token.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from jobs import transitions
from jobs.sections import Recovery
from workers.connections import ENGINE
from workers.transports.across import Across
from workers.transports.base import Broker, BrokerAway
from workers.transports.messages import Dispatch

log = logging.getLogger(__name__)
INTERVAL = 10.0  # seconds between two looks
SETTLED = 10.0  # seconds after which an announced job's message is in the broker, or was
COUNTED = 50_000  # jobs counted beyond the messages that there are
# Counting as many jobs as there are messages costs about a microsecond each: long queues are counted less often.
PER_SECOND = 1000
RAREST = 300.0  # seconds
# A broker that can't say how many messages wait gives no other sign of a lost one than the time that its job waits.
UNTOLD = 1800.0  # seconds


class Reconcile:
    """Compares, queue by queue, the announced jobs with the messages that wait, by `run_once`, in a routine's thread.

    `timeout`: seconds that the broker may take for an answer. What one look lacks is written when the next one,
    INTERVAL later, lacks it as well. Who leads anew, or again, begins anew.
    """

    def __init__(
        self,
        broker: Broker,
        loop: asyncio.AbstractEventLoop,
        settings: Recovery,
        *,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = Across(broker, loop, timeout)
        self._settings = settings
        self._clock = clock
        self._lacking: dict[str, tuple[float, int]] = {}  # by queue: since when, and how many at the least
        self._next: dict[str, float] = {}
        self._ran = 0.0
        self._taken_off: list[Dispatch] = []  # what the broker had set aside, until it is announced again

    def run_once(self) -> int:
        """Announce again what seems to be lost; returns how many jobs that were, of the queue with the most.

        Does nothing while there is no broker. Call again at once while it is as many as `recovery.batch_size`.
        """
        now = self._clock()
        paused, self._ran = now - self._ran > INTERVAL * 3, now
        if paused or not self._line.connected:  # after an absence of the broker what it had to hand out comes late
            self._lacking.clear()
        if not self._line.connected:
            return 0
        try:
            written = [self._set_aside()]
            queues = transitions.waiting_queues(using=ENGINE)
            for known in (self._lacking, self._next):
                for queue in known.keys() - set(queues):
                    del known[queue]
            written += [self._look(queue) for queue in queues]
        except BrokerAway:
            return 0
        return max(written)

    def _set_aside(self) -> int:
        """What the broker itself gave up, such as a message that was delivered too often."""
        if not self._taken_off:  # else the database went away before they were written
            self._taken_off = self._line.ask(lambda broker: broker.sweep(self._settings.batch_size))
        found = self._taken_off
        if found:
            again = transitions.reannounce([(message.job, message.token) for message in found], using=ENGINE)
            log.warning("reconcile.set_aside", extra={"messages": len(found), "announced_again": again})
        self._taken_off = []
        return len(found)

    def _look(self, queue: str) -> int:
        if self._clock() < self._next.get(queue, 0.0):
            return 0
        # The messages first: what is claimed between the two looks lowers the number of jobs, which is the safe side.
        depth = self._line.ask(lambda broker: broker.depth(queue))
        if depth is None:
            self._lacking.pop(queue, None)
            return self._too_old(queue, self._settings.redispatch_enqueued_after or UNTOLD)
        self._next[queue] = self._clock() + min(RAREST, depth / PER_SECOND)
        most = depth + COUNTED
        jobs = transitions.announced(queue, age=SETTLED, most=most, using=ENGINE)
        written = self._missing(queue, max(0, jobs - depth))
        if self._settings.redispatch_enqueued_after is not None:
            written = max(written, self._too_old(queue, self._settings.redispatch_enqueued_after))
        return written

    def _missing(self, queue: str, lack: int) -> int:
        now = self._clock()
        since, least = self._lacking.pop(queue, (now, lack))
        least = min(least, lack)
        written = 0
        if least and now - since >= INTERVAL * 0.8:
            limit = min(least, self._settings.batch_size)
            written = transitions.reannounce_oldest(queue, age=SETTLED, limit=limit, using=ENGINE)
            if written:
                log.warning("reconcile.missing", extra={"queue": queue, "missing": lack, "announced_again": written})
        if least - written > 0:
            self._lacking[queue] = (since, least - written)
        return written

    def _too_old(self, queue: str, age: float) -> int:
        written = transitions.reannounce_oldest(queue, age=age, limit=self._settings.batch_size, using=ENGINE)
        if written:
            log.info("reconcile.too_old", extra={"queue": queue, "seconds": age, "announced_again": written})
        return written
