"""What the transports share whose messages name jobs: from deliveries to held jobs, and what becomes of each message.

Law 4: a message is acknowledged after the claim that it led to is committed, never before. Acknowledged is then what
the database has decided about: jobs that were claimed, parked, deferred, and those that the message's token does not
name any more (duplicates, old messages, deleted and cancelled jobs). What it has not decided about goes back.
"""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from uuid import UUID

from django.utils.translation import gettext as _

from jobs.text import first_line
from jobs.transitions import Wanted
from jobs.transitions.sql import refused
from workers.connections import DATABASE_ERRORS, Backoff
from workers.leases import Held, Named
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks, LocksAway
from workers.transports.messages import Dispatch

log = logging.getLogger(__name__)
PATIENCE = 2.0  # seconds that messages stay here while the database says nothing
LONGEST_REST = 5.0  # seconds at most without a try while there is no quorum of locks, or a claim fails unforeseen
Pair = tuple[UUID, UUID]


class Delivery(ABC):
    """A message of ours that a broker has handed to this worker. Exactly one of the methods is called, once, on the
    loop; none raises or waits, and none does anything when the broker has taken the message back meanwhile."""

    dispatch: Dispatch

    @abstractmethod
    def ack(self) -> None:
        """The database has decided: the message is done with."""

    @abstractmethod
    def give_back(self) -> None:
        """Let others, or this worker later, have it."""

    @abstractmethod
    def reject(self, reason: str) -> None:
        """It can't be processed, ever: put it where such messages are looked at, with the reason."""


class NamedClaims:
    """Lives on the engine's loop. `allows` says whether deliveries of a queue are of any use at the moment: while it is
    false a transport consumes nothing of it and holds nothing; `review` is called when that may have changed: after
    each look of `watch`, and when it becomes so for all of them in the middle of a claim. `look` finds out what is
    paused, and that the database is back."""

    def __init__(self, claims: ClaimLedger, locks: JobLocks, review: Callable[[], None] = lambda: None) -> None:
        self._claims = claims
        self._locks = locks
        self._review = review
        self._looking: asyncio.Future[set[str]] | None = None
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._paused: set[str] | None = None  # unknown yet
        self._database = True
        self._resting_until = 0.0
        self._resting_for = ""
        self._rest = Backoff(LONGEST_REST)

    @property
    def ready(self) -> bool:
        """Whether a delivery could be claimed."""
        return self._database and self._loop.time() >= self._resting_until

    def allows(self, queue: str) -> bool:
        """Whether one of this queue could: it is not paused either."""
        return self.ready and self._paused is not None and queue not in self._paused

    def problems(self) -> list[dict[str, str]]:
        """Why nothing is taken, where the database could still be told."""
        if not self._resting_for:
            return []
        return [{"part": "claims", "error": _("No work is taken for now: %(why)s") % {"why": self._resting_for}}]

    async def watch(self, queues: Sequence[str], poll: float) -> None:
        """Look every `poll` seconds or so, until it is cancelled."""
        while True:
            self._changed.clear()
            await self.look(queues)
            self._review()
            with suppress(TimeoutError):
                async with asyncio.timeout(poll * random.uniform(0.8, 1.2)):  # noqa: S311  (spreads workers)
                    await self._changed.wait()

    def look_again(self) -> None:
        """`watch` looks at once: something was paused or resumed."""
        self._changed.set()

    async def look(self, queues: Sequence[str]) -> None:
        """Read which of the queues are paused, and so whether the database answers. Never raises."""
        asked = self._looking or _asked(self._claims.paused(queues))
        self._looking = asked
        try:
            done, _late = await asyncio.wait([asked], timeout=PATIENCE)
            if not done:  # it stands behind a claim that has no answer either
                self._database = False
                return
            self._looking = None
            self._paused = asked.result()
        except DATABASE_ERRORS:
            self._database = False
        except Exception:
            log.exception("pauses.unread")
        else:
            self._database = True

    async def claim(self, seated: Sequence[tuple[Delivery, int]]) -> list[Held]:
        """Claim for deliveries, each with the number of a free slot of its queue.

        When this returns, or raises, each of them has been acknowledged, given back or rejected. Raises a database
        error when the database is away.
        """
        groups: dict[Pair, list[Delivery]] = {}
        slots: dict[Pair, int] = {}
        for delivery, slot in seated:  # a message may come twice at once
            pair = (delivery.dispatch.job, delivery.dispatch.token)
            groups.setdefault(pair, []).append(delivery)
            slots.setdefault(pair, slot)
        try:
            return await self._claim(groups, slots)
        finally:
            for delivery in (delivery for group in groups.values() for delivery in group):
                delivery.give_back()

    async def _claim(self, groups: dict[Pair, list[Delivery]], slots: dict[Pair, int]) -> list[Held]:
        """`groups` loses what is decided."""
        try:
            taken = await self._locks.acquire(list(groups))
        except LocksAway as error:
            self._pause(_("there is no quorum of the Redis servers that hold the locks (%(why)s)"), error)
            return []
        mine = [pair for pair in groups if pair[1] in taken.held]
        busy = [pair for pair in groups if pair[1] in taken.busy]
        held = await self._claim_held(
            groups, [Wanted(*pair, slots[pair], groups[pair][0].dispatch.queue) for pair in mine]
        )
        if busy:
            await self._defer(groups, busy)
        return held

    async def _claim_held(self, groups: dict[Pair, list[Delivery]], wanted: list[Wanted]) -> list[Held]:
        if not wanted:
            return []
        try:
            named = await self._answer(groups, wanted)
        except BaseException as error:
            if refused(error):
                return await self._claim_apart(groups, wanted, error)
            self._locks.release([one[:2] for one in wanted])
            self._database = self._database and not isinstance(error, DATABASE_ERRORS)
            if isinstance(error, DATABASE_ERRORS) or not isinstance(error, Exception):
                raise
            self._pause(_("a claim failed: %(why)s"), error)
            return []
        self._recovered()
        waiting = {groups[pair][0].dispatch.queue for pair in groups if pair[1] in named.waiting}
        self._paused = (self._paused or set()) | waiting  # since the last look
        self._conclude(groups, wanted, named)
        return named.held

    async def _answer(self, groups: dict[Pair, list[Delivery]], wanted: list[Wanted]) -> Named:
        """What the claim brought. A worker that is cut off from the database must not keep work from the others: after
        a while its messages go back, and if the claim is committed all the same they are copies, which nobody runs."""
        asked = _asked(self._claims.claim_named(wanted))
        done, _late = await asyncio.wait([asked], timeout=PATIENCE)
        if not done:
            log.warning("claim.slow", extra={"messages": len(groups)})
            for delivery in (delivery for group in groups.values() for delivery in group):
                delivery.give_back()
            groups.clear()
            self._database = False
            self._review()
        return await asked

    def _conclude(self, groups: dict[Pair, list[Delivery]], wanted: Iterable[Wanted], named: Named) -> None:
        """The claim is committed: what it has decided about is acknowledged, and only now."""
        started = {held.claim.dispatch_id for held in named.held}
        free = []
        for one in wanted:
            pair = one[:2]
            if one.token not in named.waiting:
                for delivery in groups.pop(pair, ()):
                    delivery.ack()
            if one.token not in started:
                free.append(pair)
        self._locks.release(free)

    async def _claim_apart(
        self, groups: dict[Pair, list[Delivery]], wanted: list[Wanted], error: BaseException
    ) -> list[Held]:
        """Values of some row were refused: the batch is halved until that one stands alone."""
        if len(wanted) == 1:
            pair = wanted[0][:2]
            log.error("message.refused", extra={"job": str(pair[0]), "error": first_line(error)})
            self._locks.release([pair])
            for number, delivery in enumerate(groups.pop(pair, ())):
                if number == 0:
                    delivery.reject(f"the job can't be claimed: {first_line(error)}")
                else:
                    delivery.ack()
            return []
        middle = len(wanted) // 2
        held: list[Held] = []
        for half in (wanted[:middle], wanted[middle:]):
            with suppress(*DATABASE_ERRORS):  # what the first half has brought must run
                held += await self._claim_held(groups, half)
        return held

    async def _defer(self, groups: dict[Pair, list[Delivery]], busy: Sequence[Pair]) -> None:
        """Somebody holds these jobs' locks under another token: they come again in a moment."""
        try:
            await asyncio.wrap_future(self._claims.defer(busy))
        except DATABASE_ERRORS:
            self._database = False
        except Exception as error:
            log.exception("claim.failed")
            self._pause(_("a claim failed: %(why)s"), error)
        else:
            for pair in busy:
                for delivery in groups.pop(pair, ()):
                    delivery.ack()

    def _pause(self, why: str, error: Exception) -> None:
        self._resting_for = why % {"why": first_line(error)}
        self._resting_until = self._loop.time() + self._rest.delay()
        log.warning("claims.resting", extra={"error": first_line(error)})

    def _recovered(self) -> None:
        self._database = True
        self._resting_for = ""
        self._rest.reset()


def _asked[T](future: "Future[T]") -> "asyncio.Future[T]":
    """The ledger's answer, for the loop; one that nobody waits for any more is no news."""
    asked = asyncio.wrap_future(future)
    asked.add_done_callback(lambda done: done.cancelled() or done.exception())
    return asked
