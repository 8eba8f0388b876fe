"""A broker in memory, for what feeds one: it confirms, refuses, goes away, loses and sets aside as it is told."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from workers.leases import Held
from workers.transports.base import Broker, BrokerAway, Published
from workers.transports.messages import DeadLetter, Dispatch


class MemoryBroker(Broker):
    """`queues` holds what waits, by queue; `refused` is by queue what it says instead of confirming.

    `meanwhile` is awaited when a batch is in and not yet answered; `tells` False: it does not say how deep a queue is.
    """

    name = "memory"

    def __init__(self) -> None:
        self.queues: defaultdict[str, list[Dispatch]] = defaultdict(list)
        self.letters: list[DeadLetter] = []
        self.set_aside: list[Dispatch] = []
        self.refused: dict[str, str] = {}
        self.there = True
        self.tells = True
        self.batches: list[int] = []
        self.meanwhile: Callable[[Sequence[Dispatch | DeadLetter]], Coroutine[Any, Any, None]] | None = None

    async def take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        return []

    @property
    def connected(self) -> bool:
        return self.there

    async def publish(self, messages: Sequence[Dispatch | DeadLetter]) -> list[Published]:
        self._must_be_there()
        self.batches.append(len(messages))
        answers = [self._put(message) for message in messages]
        if self.meanwhile is not None:
            await self.meanwhile(messages)
        self._must_be_there()
        return answers

    async def depth(self, queue: str) -> int | None:
        self._must_be_there()
        return len(self.queues[queue]) if self.tells else None

    async def sweep(self, limit: int) -> list[Dispatch]:
        self._must_be_there()
        taken, self.set_aside = self.set_aside[:limit], self.set_aside[limit:]
        return taken

    @property
    def tokens(self) -> list[Any]:
        """The tokens of everything that waits, in the order in which it came, queue by queue."""
        return [message.token for messages in self.queues.values() for message in messages]

    def _put(self, message: Dispatch | DeadLetter) -> Published:
        if isinstance(message, DeadLetter):
            self.letters.append(message)
        elif message.queue in self.refused:
            return Published(self.refused[message.queue])
        else:
            self.queues[message.queue].append(message)
        return Published()

    def _must_be_there(self) -> None:
        if not self.there:
            raise BrokerAway("told to be")


@contextmanager
def loop_beside() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own, as the engine's does."""
    ready: Future[asyncio.AbstractEventLoop] = Future()

    async def forever() -> None:
        ready.set_result(asyncio.get_running_loop())
        await asyncio.Event().wait()

    thread = threading.Thread(target=_quietly, args=(forever,), daemon=True)
    thread.start()
    loop = ready.result(60)
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(_cancel_all, loop)
        thread.join(60)


def _quietly(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with suppress(asyncio.CancelledError):
        asyncio.run(work())


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
