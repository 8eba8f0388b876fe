"""Azure Service Bus, as the peer of the test kit plays it: its queues are made beforehand, as by an administrator."""

import asyncio
import base64
from typing import Any

from jobs.sections_broker import Messaging
from tests.contract.harnesses import BROKERS, HARNESSES, RECONNECT, BrokerHarness
from tests.kit.servicebus import ServiceBus
from tests.kit.servicebus_queues import DEAD
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks
from workers.transports.servicebus import ServiceBusTransport

QUEUES = ("default", "critical", "new", "dead-letter")


class ServiceBusHarness(BrokerHarness):
    """What can't be processed stands in the queues' own dead-letter queues, since there are none for errors."""

    name = "servicebus"
    server_fixture = "service_bus"
    can = frozenset({"restart", "drop", "purge"})
    server: ServiceBus

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Any) -> None:
        super().__init__(loop, server)
        self.settings = Messaging(
            transport="servicebus",
            azure_connection_string=self.server.connection_string,
            queue_prefix=self.prefix,
            publish_timeout=5,
        )
        self.server.create(*map(self.queue, QUEUES))

    def make(self, claims: ClaimLedger, locks: JobLocks, poll: float) -> ServiceBusTransport:
        return ServiceBusTransport(claims, locks, self.settings, poll, reconnect_max=RECONNECT, worker=self.prefix)

    def put(self, queue: str, body: bytes) -> None:
        self.server.inject(self.queue(queue), body)

    def ready(self, queue: str) -> int:
        return self.server.count(self.queue(queue))

    def poisoned(self, queue: str) -> list[tuple[bytes, str]]:
        taken = self.server.do("take", queue=self.queue(queue) + DEAD)
        return [(base64.b64decode(message["body"]), message["reason"][1]) for message in taken]

    def stop(self) -> None:
        self.server.do("leave")

    def start(self) -> None:
        self.server.do("return")

    def drop(self) -> None:
        self.server.do("drop")

    def purge(self, queue: str) -> None:
        self.server.do("lose", queue=self.queue(queue))

    def close(self) -> None:
        self.end_publisher()
        for queue in QUEUES:
            self.server.do("delete", queue=self.queue(queue))


HARNESSES[ServiceBusHarness.name] = BROKERS[ServiceBusHarness.name] = ServiceBusHarness
