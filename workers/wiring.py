"""The parts of a worker that the settings choose: what carries the work, the locks, who leads, and the routines."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from jobs.conf import Settings, conf
from jobs.presence import Presence
from workers import reconcile, routines
from workers.gates import Gates
from workers.leadership import Leadership
from workers.leases import LeaseBook
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks
from workers.locks.made import locks
from workers.recurring import Declared
from workers.relay import Relay
from workers.service import Service
from workers.transports.aside import PutAside
from workers.transports.base import Broker, Transport
from workers.transports.postgres import PostgresTransport

RELAY, RECONCILE = "relay", "reconcile"
INSTANTS = ("promoter", "recurring")
UPKEEP = ("retention", "promises", "folders", "run files")
CLOSING = 2.0  # seconds for what the relay has in flight


def require() -> None:
    """Raises ConfigurationError where the transport's library is not installed, or does not take its addresses."""
    messaging = conf().messaging
    if messaging.transport == "rabbitmq":
        from workers.transports.amqp import require as require_amqp

        require_amqp(messaging.urls)
    if messaging.transport == "servicebus":
        from workers.transports.azurebus import require as require_azure

        require_azure()


class Wiring:
    """Made on the engine's loop, before the consumer, which starts the transport."""

    def __init__(self, who: Presence, claims: ClaimLedger, book: LeaseBook) -> None:
        settings = conf()
        self._loop = asyncio.get_running_loop()
        made = locks(book.tokens)
        self.locks: JobLocks = made.jobs
        self.transport = _transport(settings, who, claims, self.locks)
        self.leadership = Leadership(
            who.id, made.leader, lease=settings.worker.leadership_lease, on_failure=settings.redis.on_failure
        )
        self._gates = Gates()
        self._declared = Declared()
        self.services = routines.services(self._gates, self._declared)
        self._routines = ThreadPoolExecutor(2, thread_name_prefix="turno-routine")
        # What has an instant to keep does not stand behind a sweep, or a purge, that takes its time.
        self._instants = ThreadPoolExecutor(1, thread_name_prefix="turno-instants")
        # Nor do the sweeps stand behind what looks at whole tables and folders.
        self._upkeep = ThreadPoolExecutor(1, thread_name_prefix="turno-upkeep")
        self._broker: ThreadPoolExecutor | None = None
        self._relay: Relay | None = None
        self._aside = PutAside()
        if isinstance(self.transport, Broker):
            self._add_broker(settings, self.transport)

    def _add_broker(self, settings: Settings, broker: Broker) -> None:
        messaging = settings.messaging
        self._broker = ThreadPoolExecutor(2, thread_name_prefix="turno-broker")  # a slow one holds up no other routine
        self._relay = Relay(broker, self._loop, messaging)
        look = reconcile.Reconcile(broker, self._loop, settings.recovery, timeout=messaging.publish_timeout)
        self.services[RELAY] = Service(
            RELAY, self._relay.run_once, interval=self._relay.pause, batch=messaging.outbox_batch_size, exclusive=False
        )
        self.services[RECONCILE] = Service(
            RECONCILE, look.run_once, interval=reconcile.INTERVAL, batch=settings.recovery.batch_size
        )

    @property
    def brokered(self) -> bool:
        """Whether a broker carries the work."""
        return self._relay is not None

    def start(self) -> None:
        """Begin to keep locks and to be electable."""
        self.locks.start()
        self.leadership.start()

    def background(self) -> list[tuple[str, Any]]:
        """The routines' coroutines, by name."""
        return [
            (name, service.run(self._executor(name), self.leadership.leads)) for name, service in self.services.items()
        ]

    def _executor(self, name: str) -> Executor:
        if name in INSTANTS:
            return self._instants
        if name in UPKEEP:
            return self._upkeep
        return self._broker if self._broker is not None and name in (RELAY, RECONCILE) else self._routines

    def wake(self, *names: str) -> None:
        """Run routines soon, those that this worker has."""
        for name in names:
            if name == RELAY and self._relay is not None:
                self._relay.hear()
            if (service := self.services.get(name)) is not None:
                service.wake()

    def hear(self, gate: str) -> None:
        """Somebody says that a gate may have room: whoever leads looks. Others remember it for when they do."""
        self._gates.hear(gate)
        if self.services["gates"].led:
            self.wake("gates")

    def problems(self) -> list[dict[str, str]]:
        """What people should know of broker and locks at the moment."""
        aside = self._aside.problems(self.transport.poisoned) if isinstance(self.transport, Broker) else []
        return [*self.transport.problems(), *self.locks.problems(), *aside, *self._declared.problems()]

    async def in_a_routines_thread(self, work: Callable[[], object], seconds: float) -> None:
        """Run `work` where the database may be used. Raises TimeoutError after `seconds`, and what `work` raises."""
        await asyncio.wait_for(self._loop.run_in_executor(self._routines, work), seconds)

    async def close(self) -> None:
        """Disconnect from broker and Redis, once nothing runs any more; a few seconds at most."""
        if self._relay is not None:
            await self._loop.run_in_executor(None, self._relay.close, CLOSING)
        await self.transport.close()
        await self.locks.close()
        for pool in (self._routines, self._instants, self._upkeep, self._broker):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)


def _transport(settings: Settings, who: Presence, claims: ClaimLedger, job_locks: JobLocks) -> Transport:
    messaging, worker = settings.messaging, settings.worker
    if messaging.transport == "postgres":
        return PostgresTransport(claims)
    poll, most = worker.poll_interval, worker.reconnect_max
    if messaging.transport == "rabbitmq":  # each loads its own library
        from workers.transports.rabbitmq import RabbitTransport

        return RabbitTransport(claims, job_locks, messaging, poll, reconnect_max=most, worker=who.name)
    from workers.transports.servicebus import ServiceBusTransport

    return ServiceBusTransport(claims, job_locks, messaging, poll, reconnect_max=most, worker=who.name)
