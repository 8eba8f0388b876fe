"""A worker around the transport, as small as can be: who decides about jobs, the slots, and what takes work."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import OperationalError

from jobs.outcomes import Claim
from jobs.sections_broker import Messaging
from tests.kit.servicebus import ServiceBus
from workers.clock import boottime
from workers.leases import Held, Named
from workers.locks.base import NoLocks
from workers.slots import Slots
from workers.transports.messages import Dispatch
from workers.transports.servicebus import ServiceBusTransport

POLL = 0.1  # seconds
RECONNECT = 0.5  # seconds


class Desk:
    """Decides as the database does: a token that is known is claimed once, of others nothing is said."""

    def __init__(self) -> None:
        self.waiting: dict[UUID, str] = {}  # by token: the queue
        self.started: Counter[UUID] = Counter()
        self.asked: Counter[UUID] = Counter()
        self.away = False
        self.stopped: set[str] = set()
        self.hold: asyncio.Event | None = None  # claims are answered once it is set
        self._later: list[asyncio.Future[None]] = []

    def dispatch(self, queue: str = "default") -> Dispatch:
        """A new entry of a job into Enqueued."""
        message = Dispatch(uuid4(), uuid4(), queue)
        self.waiting[message.token] = queue
        return message

    def claim_named(self, wanted: Sequence[Any]) -> "Future[Named]":
        return self._answer(lambda: self._claim(wanted), self.hold)

    def defer(self, pairs: Sequence[tuple[UUID, UUID]]) -> "Future[object]":
        return self._answer(lambda: None)

    def paused(self, queues: Sequence[str]) -> "Future[set[str]]":
        return self._answer(lambda: self.stopped & set(queues))

    def _claim(self, wanted: Sequence[Any]) -> Named:
        held, waiting = [], set()
        for job, token, slot, *_queue in wanted:
            self.asked[token] += 1
            queue = self.waiting.get(token)
            if queue in self.stopped:
                waiting.add(token)
            elif queue is not None:
                del self.waiting[token]
                self.started[token] += 1
                held.append(_held(job, token, queue, slot))
        return Named(held, frozenset(waiting))

    def _answer(self, work: Callable[[], Any], hold: asyncio.Event | None = None) -> "Future[Any]":
        future: Future[Any] = Future()
        if self.away:
            future.set_exception(OperationalError("the database is away"))
            return future
        if hold is None:
            future.set_result(work())
            return future

        async def later() -> None:
            await hold.wait()
            future.set_result(work())

        self._later.append(asyncio.ensure_future(later()))
        return future


class Worker:
    """Offers free slots until it is closed; what is held stays so until `finish`."""

    def __init__(self, bus: ServiceBus, desk: Desk, queues: Mapping[str, int], **settings: Any) -> None:
        chosen = {"transport": "servicebus", "azure_connection_string": bus.connection_string, **settings}
        self.transport = ServiceBusTransport(
            desk,  # type: ignore[arg-type]  (stands in for the ledger)
            NoLocks(),
            Messaging(**chosen),
            POLL,
            reconnect_max=RECONNECT,
            worker="desk",
        )
        self.slots = Slots(queues)
        self.held: list[Held] = []
        self._work = asyncio.Event()
        self._ended = False
        self.transport.start(queues, self._work.set)
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            offer = self.slots.take(100)
            if not offer:
                self.slots.changed.clear()
                await self.slots.changed.wait()
                continue
            self._work.clear()
            try:
                held = await self.transport.take(offer)
            except OperationalError:
                held = []
                await asyncio.sleep(POLL)
            self.held += held
            used = {(one.claim.queue, one.claim.slot) for one in held}
            for queue, slot in offer:
                if (queue, slot) not in used:
                    self.slots.give_back(queue, slot)
            for queue in {queue for queue, _slot in offer}:
                if not self.slots.free(queue):
                    self.transport.full(queue)
            if not held:
                try:
                    async with asyncio.timeout(1):
                        await self._work.wait()
                except TimeoutError:
                    pass

    def finish(self, count: int = 1) -> None:
        """So many of the jobs that are held end, the oldest first."""
        for held in self.held[:count]:
            self.slots.give_back(held.claim.queue, held.claim.slot)
            self.transport.room(held.claim.queue, self.slots.free(held.claim.queue))
        del self.held[:count]

    async def close(self) -> None:
        """In the order in which a worker ends."""
        self._running.cancel()
        await asyncio.wait([self._running])
        await self.transport.close()


async def until(probe: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Returns when `probe` is true; fails, naming `what`, after `seconds`. The loop goes on meanwhile."""
    limit = boottime() + seconds
    while not await asyncio.to_thread(probe):
        assert boottime() < limit, f"waited {seconds:g} s in vain: {what}"
        await asyncio.sleep(0.02)


def _held(job: UUID, token: UUID, queue: str, slot: int) -> Held:
    claim = Claim(
        id=job,
        dispatch_id=token,
        type="probe.async",
        queue=queue,
        payload={},
        slot=slot,
        execution=1,
        attempts_used=0,
        max_attempts=5,
        lost_count=0,
        timeout=None,
        at_most_once=False,
        claimed_at=datetime.now(UTC),
    )
    return Held(claim, boottime() + 60)
