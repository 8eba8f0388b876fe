"""The cluster profile for tests: one RabbitMQ a test process, used by one test at a time with queues of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from tests.kit.processes import Fleet
from tests.kit.rabbitmq_server import RabbitNode, raw
from tests.kit.redis_server import RedisServer


class Cluster:
    """The servers of a test, and the names that its workers use there."""

    def __init__(self, node: RabbitNode, redis: list[RedisServer]) -> None:
        self.node = node
        self.redis = redis
        self.prefix = f"t{uuid4().hex[:12]}"

    @property
    def env(self) -> dict[str, str]:
        """What a worker, or a web process, of this cluster has in its environment."""
        return {
            "TURNO_MESSAGING__TRANSPORT": "rabbitmq",
            "TURNO_MESSAGING__URLS": self.node.url,
            "TURNO_MESSAGING__QUEUE_PREFIX": self.prefix,
            "TURNO_MESSAGING__OUTBOX_INTERVAL": "300ms",
            "TURNO_MESSAGING__OUTBOX_LEASE": "4s",
            "TURNO_MESSAGING__PUBLISH_TIMEOUT": "2s",
            "TURNO_MESSAGING__HEARTBEAT": "2s",
            "TURNO_REDIS__URLS": ",".join(server.url for server in self.redis),
            "TURNO_REDIS__KEY_PREFIX": f"{self.prefix}:",
            "TURNO_WORKER__LOCK_EXPIRY": "2s",
        }

    def queue(self, name: str = "default") -> str:
        """The broker's name of a queue."""
        return f"{self.prefix}-{name}"

    def depth(self, name: str = "default") -> int:
        """How many messages wait in a queue; 0 where there is none."""
        with raw(self.node.url) as channel:
            return int(channel.queue_declare(self.queue(name), passive=True).method.message_count)

    def put(self, body: bytes, name: str = "default") -> None:
        """Put any message into a queue, past everything of ours."""
        with raw(self.node.url) as channel:
            channel.basic_publish("", self.queue(name), body)

    def forget(self) -> None:
        """Delete the queues of this test."""
        with raw(self.node.url) as channel:
            for name in ("default", "default_error", "dead-letter", "other", "other_error"):
                channel.queue_delete(self.queue(name))


@contextmanager
def cluster_of(node: RabbitNode, redis: list[RedisServer]) -> Iterator[Cluster]:
    """One whose queues are gone after the block."""
    cluster = Cluster(node, redis)
    try:
        yield cluster
    finally:
        node.thaw()
        cluster.forget()


def join(fleet: Fleet, cluster: Cluster) -> Fleet:
    """The fleet's workers work in the cluster profile."""
    fleet.env |= cluster.env
    return fleet
