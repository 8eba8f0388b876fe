"""Job locks as a worker has them, on servers of the tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from tests.kit.redis_server import RedisServer
from workers.locks.joblocks import RedisJobLocks
from workers.locks.redis_nodes import Nodes
from workers.locks.redlock import Redlock

PREFIX = "turno:"
TIMEOUT = 0.25  # seconds for an answer: the machine that runs the tests may be busy
LONG = 30.0  # seconds of a TTL that no test waits for
LEASE = 3.0  # seconds of a leader's lock and lease: a busy machine must not make it lose them by itself
Pair = tuple[UUID, UUID]


def pair(job: UUID | None = None) -> Pair:
    """A job, new or this one, and a new dispatch token."""
    return job or uuid4(), uuid4()


def key(job: UUID) -> str:
    """The key of the job's lock."""
    return f"{PREFIX}job:{job}"


@asynccontextmanager
async def worker(
    servers: Sequence[RedisServer | str],
    *,
    ttl: float = LONG,
    on_failure: str = "fence",
    running: Callable[[], Iterable[UUID]] | None = None,
) -> AsyncIterator[RedisJobLocks]:
    """The locks of one worker, begun, and closed with the block."""
    urls = [server if isinstance(server, str) else server.url for server in servers]
    nodes = Nodes(urls, prefix=PREFIX, timeout=TIMEOUT)
    redlock = Redlock(nodes, ttl=ttl, drift=0.01)
    locks = RedisJobLocks(nodes, redlock, on_failure=on_failure, running=running)
    locks.start()
    await nodes.settled()
    try:
        yield locks
    finally:
        await locks.close()


async def until(probe: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Returns when the answer is true; the loop runs meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            while not probe():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"waited {seconds:g} s in vain: {what}") from None


def values(servers: Sequence[RedisServer], job: UUID) -> list[object]:
    """What each server says of the job's lock."""
    return [server.ask("GET", key(job)) for server in servers]


def locked(servers: Sequence[RedisServer]) -> set[str]:
    """The keys of job locks on any of the servers; none may be there without a TTL."""
    found = {}
    for server in servers:
        found |= server.ttls()
    assert [name for name, left in found.items() if left < 0] == []
    return {name for name in found if name.startswith(f"{PREFIX}job:")}
