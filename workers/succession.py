"""Who comes next on a key may start in the slot of the job that has ended before it: with its end, and at once."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from jobs.transitions import Settled
from workers.clock import boottime
from workers.leases import Held, Interrupt, LeaseBook
from workers.locks.base import JobLocks
from workers.slots import Slots

SPELL = 2.0  # seconds for which jobs follow each other in a slot without being asked for, on an average


class Succession:
    """Of one consumer. `may_start` says whether anything may: asked in the ledger's thread."""

    def __init__(
        self,
        book: LeaseBook,
        slots: Slots,
        locks: JobLocks,
        may_start: Callable[[], bool],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._book = book
        self._slots = slots
        self._locks = locks
        self._may_start = may_start
        self._chance = chance
        self._over = False

    def offer(self, tokens: Sequence[UUID]) -> tuple[dict[UUID, tuple[str, int]], Mapping[str, int]]:
        """In the ledger's thread: the slots of these executions, which are over, that whoever comes next may have, and
        how many others are free, by queue.

        None where nothing may start. And one of them is not offered now and then, each at another time, on an average
        after SPELL seconds: any worker may have the next job then, so that work does not stay where it began while
        others have nothing to do.
        """
        if not (self._may_start() and self._locks.adopts) or self._book.outlived():
            return {}, {}
        now, found = boottime(), filter(None, map(self._book.get, tokens))
        ended = [held for held in found if held.claim.keyed and now - held.since < SPELL * self._chance()]
        if not ended:
            return {}, {}
        taken = Counter(held.claim.queue for held in self._book.everything())
        room = {queue: self._slots.queues[queue] - taken[queue] for queue in {held.claim.queue for held in ended}}
        kept = [held.claim for held in ended if room[held.claim.queue] >= 0]
        return {claim.dispatch_id: (claim.queue, claim.slot) for claim in kept}, room

    def of(self, settled: Settled | None) -> Held | None:
        """Who has started with this end; None also where its claim's answer came too late."""
        started = settled.successor if settled else None
        return self._book.known(started.dispatch_id) if started else None  # (also past its deadline: it ends so)

    def begin(self, successor: Held) -> None:
        """On the loop: it starts now."""
        self._locks.adopt([(successor.claim.id, successor.claim.dispatch_id)])
        if self._over:
            successor.ask(Interrupt.SHUTDOWN)

    def end(self) -> None:
        """All that runs is asked to stop: so is who comes with an end that is just being written."""
        self._over = True
