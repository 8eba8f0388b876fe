"""Redis servers of a module's own, empty and answering at the start of each test."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.kit.english import english  # noqa: F401  (around each test)
from tests.kit.redis_server import RedisServer, running_redis
from tests.locks.house import LEASE, PREFIX, TIMEOUT
from tests.locks.named import loop_in_a_thread
from tests.transitions.rows import execute
from workers.leadership import Leadership
from workers.locks.made import leader_key
from workers.locks.redis_nodes import Nodes
from workers.locks.redlock import NamedLock, Redlock


@pytest.fixture(scope="module")
def _three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    with running_redis(tmp_path_factory.mktemp("locks"), 3) as servers:
        yield servers


@pytest.fixture
def three(_three: list[RedisServer]) -> Iterator[list[RedisServer]]:
    """Three servers, whatever the test does to them."""
    yield _three
    for server in _three:
        server.restore()


@pytest.fixture
def loop(transactional_db):
    """The loop on which candidates ask Redis; the lease rows are gone after the test."""
    with loop_in_a_thread() as running:
        yield running
    execute("DELETE FROM turno.leases")


@pytest.fixture
def candidate(loop):
    """Makes a worker's leadership over these servers: `candidate(three, "fence", lease=4.0)`, in seconds."""
    made = []

    async def make(urls, on_failure, lease):
        nodes = Nodes(urls, prefix=PREFIX, timeout=TIMEOUT)
        nodes.begin()
        await nodes.settled()
        made.append(nodes)
        lock = NamedLock(Redlock(nodes, ttl=lease, drift=0.01), leader_key(PREFIX))
        leader = Leadership(uuid4(), lock, lease=lease, on_failure=on_failure)
        leader.start()
        return leader

    def candidate(servers, on_failure="defer", lease=LEASE):
        urls = [getattr(server, "url", server) for server in servers]
        return asyncio.run_coroutine_threadsafe(make(urls, on_failure, lease), loop).result(60)

    yield candidate
    for nodes in made:
        asyncio.run_coroutine_threadsafe(nodes.close(), loop).result(60)
