"""A lock by name, as the contract knows it, over PostgreSQL's lease row and over Redis; used from any thread."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol
from uuid import UUID

from django.db import connections

from jobs import leadership
from tests.kit.redis_server import RedisServer
from tests.locks.house import PREFIX, TIMEOUT
from workers.locks.redis_nodes import Nodes
from workers.locks.redlock import NamedLock, Redlock, Standing

NAME = "contract"


class Named(Protocol):
    """One lock with one TTL (seconds), as one process has it."""

    def take(self, who: UUID) -> bool:
        """Take it, or keep it."""

    def extend(self, who: UUID) -> bool:
        """Keep it, while somebody has it."""

    def release(self, who: UUID) -> None:
        """Give it back."""


class Row:
    """The lease row."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl

    def take(self, who: UUID) -> bool:
        return leadership.lead(NAME, who, lease=self._ttl)

    extend = take

    def release(self, who: UUID) -> None:
        leadership.resign(NAME, who)


class Rows:
    """What makes them: a connection a thread."""

    servers: Sequence[RedisServer] = ()

    def lock(self, ttl: float) -> Row:
        return Row(ttl)

    def thread_ends(self) -> None:
        connections["default"].close()

    def close(self) -> None:
        """There is nothing to end."""


class OverRedis:
    """A lock in Redis, asked on the loop of another thread, as the routines of a worker ask."""

    def __init__(self, lock: NamedLock, loop: asyncio.AbstractEventLoop) -> None:
        self._lock, self._loop = lock, loop

    def take(self, who: UUID) -> bool:
        return asyncio.run_coroutine_threadsafe(self._lock.take(str(who)), self._loop).result(60) is Standing.MINE

    def extend(self, who: UUID) -> bool:
        return asyncio.run_coroutine_threadsafe(self._lock.extend(str(who)), self._loop).result(60) is Standing.MINE

    def release(self, who: UUID) -> None:
        asyncio.run_coroutine_threadsafe(self._lock.release(str(who)), self._loop).result(60)


class InRedis:
    """What makes them: connections of its own for each lock, and a loop in a thread for all."""

    def __init__(self, servers: Sequence[RedisServer], loop: asyncio.AbstractEventLoop) -> None:
        self.servers = servers
        self._loop = loop
        self._nodes: list[Nodes] = []

    def lock(self, ttl: float) -> OverRedis:
        return OverRedis(asyncio.run_coroutine_threadsafe(self._made(ttl), self._loop).result(60), self._loop)

    async def _made(self, ttl: float) -> NamedLock:
        nodes = Nodes([server.url for server in self.servers], prefix=PREFIX, timeout=TIMEOUT)
        self._nodes.append(nodes)
        nodes.begin()
        await nodes.settled()
        return NamedLock(Redlock(nodes, ttl=ttl, drift=0.01), f"{PREFIX}{NAME}")

    def thread_ends(self) -> None:
        """A contender's thread has nothing of its own."""

    def close(self) -> None:
        for nodes in self._nodes:
            asyncio.run_coroutine_threadsafe(nodes.close(), self._loop).result(60)


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in a thread of its own, as the engine's does for the routines."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loop")
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
