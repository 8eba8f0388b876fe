"""A worker's post, as small as can be: a transport, the ledger that claims, and slots that the test frees."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID, uuid4

from jobs.presence import Presence
from tests.kit.processes import eventually
from workers.connections import DATABASE_ERRORS
from workers.leases import Held, LeaseBook
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks, NoLocks
from workers.slots import Slots
from workers.transports.base import Broker, Transport

POLL = 0.1  # seconds
PATIENCE = 60.0  # seconds until a test that hangs is told so


class MakesTransports(Protocol):
    """What a post needs of a harness."""

    def make(self, claims: ClaimLedger, locks: JobLocks, poll: float) -> Transport: ...


class Post:
    """Offers its free slots, on an event loop of another thread, until it is closed; what it holds stays so until
    `finish`. Taking and accounting are those of `workers.consumer`, without what runs the jobs."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        harness: MakesTransports,
        queues: Mapping[str, int],
        *,
        types: Sequence[str] = ("test.echo",),
        locks: JobLocks | None = None,
    ) -> None:
        self.id = uuid4()
        self.held: list[Held] = []
        self.book = LeaseBook()
        who = Presence(self.id, "post", "h", "b", "n", 7, "1", "0", dict(queues), list(types))
        self.claims = ClaimLedger(who, self.book, 60.0, 100, 0.2)
        self.claims.start()
        self._loop = loop
        self._slots = Slots(queues)
        self._taking = True
        self._closed = False
        self._call(self._begin(harness, locks or NoLocks()))

    async def _begin(self, harness: MakesTransports, locks: JobLocks) -> None:
        self._work = asyncio.Event()
        self.transport = harness.make(self.claims, locks, POLL)
        self.transport.start(self._slots.queues, self._work.set)
        self._run = asyncio.create_task(self._take_work())

    def _call[T](self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.call(coroutine).result(PATIENCE)

    def call[T](self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run it on the engine's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _take_work(self) -> None:
        while self._taking:
            offer = self._slots.take(100)
            if not offer:
                self._slots.changed.clear()
                await self._slots.changed.wait()
                continue
            self._work.clear()
            held: list[Held] = []
            with suppress(*DATABASE_ERRORS):
                held = await self.transport.take(offer)
            self.held += held
            used = {(one.claim.queue, one.claim.slot) for one in held}
            assert used <= set(offer)
            for queue, slot in offer:
                if (queue, slot) not in used:
                    self._slots.give_back(queue, slot)
            for queue in {queue for queue, _slot in offer}:
                if not self._slots.free(queue):
                    self.transport.full(queue)
            if not held:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL):
                        await self._work.wait()

    # What the tests say

    @property
    def broker(self) -> Broker:
        """The transport, where there is a broker behind it."""
        assert isinstance(self.transport, Broker)
        return self.transport

    def jobs(self) -> list[UUID]:
        """The ids of the jobs that it holds, in the order in which they came."""
        return [held.claim.id for held in self.held]

    def has(self, count: int, seconds: float = PATIENCE) -> list[UUID]:
        """Waits until it holds so many jobs; their ids."""
        eventually(lambda: len(self.held) >= count, f"{count} jobs come", seconds)
        assert len(self.held) == count
        return self.jobs()

    def finish(self, count: int = 1) -> None:
        """So many of the jobs that it holds end, the oldest first."""
        done, self.held = self.held[:count], self.held[count:]
        self._loop.call_soon_threadsafe(self._free, done)

    def _free(self, done: Sequence[Held]) -> None:
        for held in done:
            held.freed = True
            self._slots.give_back(held.claim.queue, held.claim.slot)
            self.transport.room(held.claim.queue, self._slots.free(held.claim.queue))

    def pause(self) -> None:
        """As a worker does that is told to stop."""
        self._taking = False
        self._loop.call_soon_threadsafe(self._slots.changed.set)
        self._call(self.transport.pause())

    def looks_again(self) -> None:
        """As a worker does that hears of a queue that was paused or resumed."""
        self._loop.call_soon_threadsafe(self.transport.look)

    def problems(self) -> str:
        """What it would tell people, as one text."""
        return " ".join(problem["error"] for problem in self.transport.problems())

    def close(self) -> None:
        """In the order in which a worker ends; once."""
        if self._closed:
            return
        self._closed, self._taking = True, False
        self._call(self._close())
        assert self.claims.close(PATIENCE)

    async def _close(self) -> None:
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)
        await self.transport.close()
