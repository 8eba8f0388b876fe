"""One harness a transport: how the tests make it, feed it, and harm what stands behind it.

To add a transport, write a subclass of `Harness` and add it to `HARNESSES`. What a server can't do is left out of
`can`: the tests that need it are not collected for it. `server_fixture` names the fixture that starts its server, when
the first test needs it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

from jobs.sections_broker import Messaging
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import RabbitServer, raw
from tests.transitions.rows import Made
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks, NoLocks
from workers.transports.base import Broker, Transport
from workers.transports.messages import DeadLetter, Dispatch, error_queue
from workers.transports.postgres import PostgresTransport
from workers.transports.rabbitmq import RabbitTransport

RECONNECT = 0.5  # seconds at most between two tries of a transport to reach its broker


class Harness(ABC):
    """A transport as the tests see it. `server` is what the fixture of that name gives, of this transport's kind."""

    name = ""
    server_fixture: str | None = None  # the fixture that gives the server, None for PostgreSQL alone
    can: frozenset[str] = frozenset()

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Any) -> None:
        self.loop = loop
        self.server = server
        self.prefix = f"t{uuid4().hex[:12]}"  # the queues of one test are no other's

    @abstractmethod
    def make(self, claims: ClaimLedger, locks: JobLocks, poll: float) -> Transport:
        """A new transport; called on the loop."""

    @abstractmethod
    def announce(self, *made: Made, priority: int = 0) -> None:
        """What the outbox's relay does for jobs that became Enqueued."""

    @abstractmethod
    def close(self) -> None:
        """Take away what the test has left behind."""


class BrokerHarness(Harness):
    """One behind which there is a broker. `can` may have:

    restart     the server can be taken away and brought back (`stop`, `start`)
    drop        it can close every connection (`drop`)
    delete      a queue can be deleted while it is consumed (`delete`)
    purge       a queue can be emptied (`purge`)
    priorities  what waits is brought by priority
    """

    _publisher: Broker | None = None

    def announce(self, *made: Made, priority: int = 0) -> None:
        self.publish(*(Dispatch(one.id, one.token, one.queue, priority) for one in made))

    @abstractmethod
    def make(self, claims: ClaimLedger, locks: JobLocks, poll: float) -> Broker: ...

    def queue(self, name: str) -> str:
        """The queue's name at the broker."""
        return f"{self.prefix}-{name}"

    def publisher(self) -> Broker:
        """A transport that consumes nothing."""
        if self._publisher is None:
            self._publisher = asyncio.run_coroutine_threadsafe(self._make_publisher(), self.loop).result(60)
        eventually(lambda: self._publisher and self._publisher.connected, "the publisher is connected")
        return self._publisher

    async def _make_publisher(self) -> Broker:
        transport = self.make(NothingPaused(), NoLocks(), 1.0)  # type: ignore[arg-type]  (a part of the ledger)
        transport.start({}, lambda: None)
        return transport

    def end_publisher(self) -> None:
        """Disconnect it."""
        if self._publisher is not None:
            asyncio.run_coroutine_threadsafe(self._publisher.close(), self.loop).result(60)

    def publish(self, *messages: Dispatch | DeadLetter) -> None:
        """Publish by a transport that consumes nothing, and see all confirmed."""
        sent = asyncio.run_coroutine_threadsafe(self.publisher().publish(messages), self.loop).result(60)
        errors = {answer.error for answer in sent}
        assert errors == {None}, errors

    @abstractmethod
    def put(self, queue: str, body: bytes) -> None:
        """Put any body into a queue, past everything of ours."""

    @abstractmethod
    def ready(self, queue: str) -> int:
        """How many messages of the queue wait to be delivered."""

    @abstractmethod
    def poisoned(self, queue: str) -> list[tuple[bytes, str]]:
        """What was put aside of the queue, with the reasons, oldest first; it is gone then."""

    def stop(self) -> None:
        """Take the broker away."""
        raise NotImplementedError

    def start(self) -> None:
        """Bring it back, with what is durable."""
        raise NotImplementedError

    def drop(self) -> None:
        """Close every connection."""
        raise NotImplementedError

    def delete(self, queue: str) -> None:
        """Delete a queue with what it holds."""
        raise NotImplementedError

    def purge(self, queue: str) -> None:
        """Empty a queue."""
        raise NotImplementedError


class PostgresHarness(Harness):
    """PostgreSQL carries the work itself."""

    name = "postgres"
    can = frozenset({"priorities"})

    def make(self, claims: ClaimLedger, locks: JobLocks, poll: float) -> Transport:
        return PostgresTransport(claims)

    def announce(self, *made: Made, priority: int = 0) -> None:
        """The row is all."""

    def close(self) -> None:
        """The rows go with the test."""


class RabbitHarness(BrokerHarness):
    """RabbitMQ, with classic queues."""

    name = "rabbitmq"
    server_fixture = "rabbitmq"
    can = frozenset({"restart", "drop", "delete", "purge", "priorities"})
    queue_type = "classic"
    server: RabbitServer

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Any, **settings: Any) -> None:
        super().__init__(loop, server)
        own = {"urls": (self.server.url,), "queue_prefix": self.prefix, "queue_type": self.queue_type}
        self.settings = Messaging(transport="rabbitmq", **own | {"heartbeat": 10, "publish_timeout": 5} | settings)
        self._closed = False

    def make(self, claims: ClaimLedger, locks: JobLocks, poll: float) -> RabbitTransport:
        return RabbitTransport(claims, locks, self.settings, poll, reconnect_max=RECONNECT, worker=self.prefix)

    def put(self, queue: str, body: bytes) -> None:
        with self.raw() as channel:
            channel.confirm_delivery()
            channel.basic_publish("", self.queue(queue), body, mandatory=True)

    def ready(self, queue: str) -> int:
        with self.raw() as channel:
            return int(channel.queue_declare(self.queue(queue), passive=True).method.message_count)

    def poisoned(self, queue: str) -> list[tuple[bytes, str]]:
        found = []
        with self.raw() as channel:
            while True:
                method, properties, body = channel.basic_get(self.queue(error_queue(queue)), auto_ack=True)
                if method is None or properties is None:
                    return found
                assert properties.delivery_mode == 2
                found.append((body, (properties.headers or {})["x-turno-reason"]))

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    def drop(self) -> None:
        self.server.ctl("close_all_connections", "a test")

    def delete(self, queue: str) -> None:
        with self.raw() as channel:
            channel.queue_delete(self.queue(queue))

    def purge(self, queue: str) -> None:
        with self.raw() as channel:
            channel.queue_purge(self.queue(queue))

    def raw(self) -> AbstractContextManager[Any]:
        """A channel of the client library itself."""
        return raw(self.server.url)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.end_publisher()
        with self.raw() as channel:
            for queue in ("default", "critical", "new", "dead-letter"):
                for name in (queue, error_queue(queue)):
                    channel.queue_delete(self.queue(name))


class QuorumHarness(RabbitHarness):
    """RabbitMQ, with quorum queues. What becomes of connections is the same for all queues."""

    name = "rabbitmq quorum"
    can = frozenset({"delete", "purge"})
    queue_type = "quorum"


class NothingPaused:
    """The ledger of who claims nothing."""

    def paused(self, queues: Sequence[str]) -> "Future[set[str]]":
        """None of them."""
        future: Future[set[str]] = Future()
        future.set_result(set())
        return future


HARNESSES: dict[str, type[Harness]] = {
    harness.name: harness for harness in (PostgresHarness, RabbitHarness, QuorumHarness)
}
BROKERS = {name: harness for name, harness in HARNESSES.items() if issubclass(harness, BrokerHarness)}
