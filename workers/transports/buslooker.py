"""Looking at queues of Service Bus without working on them: how many messages there are, what the service set aside."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from workers.transports.azurebus import Bus, Message, Reader
from workers.transports.base import BrokerAway
from workers.transports.busfeed import OURS
from workers.transports.busterms import LockLost, NoQueue, Refused
from workers.transports.messages import Dispatch, Garbage, read

# A client can't ask how many messages a queue has: they are counted by looking at them, page by page, and no further
# than this. Up to so many a job whose message is gone is found at once; with more, when the queue is that short again,
# or by the job's age.
COUNTED = 5000
SWEPT = 250  # messages of a dead-letter queue that are looked at in one call
FETCH = 1.0  # seconds for messages of which we know that they wait


class Looker:
    """Lives on the engine's loop; one look at a time."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._readers: dict[tuple[str, bool], Reader] = {}
        self._turn = asyncio.Lock()

    async def depth(self, name: str) -> int | None:
        """How many messages a queue has, those that somebody holds too; None: many, or it can't be told. Raises
        BrokerAway, as `sweep` does."""
        found = await self._look(name, lambda reader: reader.browse(COUNTED))
        return None if found is None or len(found) >= COUNTED else len(found)

    async def sweep(self, name: str, queue: str, limit: int) -> list[Dispatch]:
        """Dispatches that the service has set aside of Turno's `queue`, taken off its dead-letter queue."""

        async def sweep(reader: Reader) -> list[Dispatch]:
            seen = [_dispatch(message, queue) for message in await reader.browse(SWEPT)]
            wanted = [place for place, dispatch in enumerate(seen) if dispatch is not None][:limit]
            if not wanted:
                return []
            found: list[Dispatch] = []
            try:
                for message in await reader.receive(wanted[-1] + 1, FETCH):  # what stands before them comes along
                    dispatch = _dispatch(message, queue)
                    with suppress(LockLost):
                        await (reader.abandon(message) if dispatch is None else reader.complete(message))
                        found += [] if dispatch is None else [dispatch]
            except (BrokerAway, Refused):
                if not found:  # what was taken off must be told of
                    raise
            return found

        return await self._look(name, sweep, dead=True) or []

    async def _look[T](self, name: str, work: Callable[[Reader], Awaitable[T]], *, dead: bool = False) -> T | None:
        """What `work` finds; None where the queue can't be looked at. Raises BrokerAway.

        The connection stays for the next look; one that ended meanwhile, as the service does with idle ones, is made
        anew.
        """
        async with self._turn:
            old = (name, dead) in self._readers
            try:
                return await self._with_reader(name, dead, work)
            except BrokerAway:
                if not old:
                    raise
                return await self._with_reader(name, dead, work)

    async def _with_reader[T](self, name: str, dead: bool, work: Callable[[Reader], Awaitable[T]]) -> T | None:
        reader = self._readers.pop((name, dead), None)
        try:
            if reader is None:
                reader = self._bus.reader(name, dead=dead)
                await reader.open()
            found = await work(reader)
        except BaseException as error:
            if reader is not None:
                await reader.close()
            if isinstance(error, (NoQueue, Refused)):
                return None
            raise
        self._readers[name, dead] = reader
        return found

    async def close(self) -> None:
        """Disconnect. Never raises."""
        readers, self._readers = list(self._readers.values()), {}
        await asyncio.gather(*(reader.close() for reader in readers), return_exceptions=True)


def _dispatch(message: Message, queue: str) -> Dispatch | None:
    """The dispatch that the service has set aside; None for garbage, and for what we have put there ourselves."""
    if message.reason == OURS:
        return None
    try:
        return read(message.body(), queue)
    except Garbage:
        return None
