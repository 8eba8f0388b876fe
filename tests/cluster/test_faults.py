"""Broker and Redis go away, forget and come back in the middle of 2,000 jobs: each is started once, none is lost."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from pika.exceptions import AMQPError

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job, JobAttempt, OutboxMessage
from tests.kit.cluster import Cluster
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import raw

pytestmark = pytest.mark.crash
COUNT = 2000
WORKERS = "abc"
HOLD = 0.01  # seconds a job, so that there is a middle


def restart(cluster: Cluster) -> None:
    """RabbitMQ is killed and comes back with what it had on disk."""
    cluster.node.kill()
    time.sleep(0.5)
    cluster.node.start()


def stop_in_order(cluster: Cluster) -> None:
    """RabbitMQ is stopped as an administrator does, three times in a row."""
    for _ in range(3):
        cluster.node.stop()
        cluster.node.start()


def close_connections(cluster: Cluster) -> None:
    """The broker closes every connection, again and again."""
    for _ in range(4):
        cluster.node.ctl("close_all_connections", "a test")


def purge(cluster: Cluster) -> None:
    """Somebody empties the queue: its jobs are announced to nobody any more."""
    with raw(cluster.node.url) as channel:
        channel.queue_purge(cluster.queue())


def delete(cluster: Cluster) -> None:
    """Somebody deletes the queue under its consumers."""
    with raw(cluster.node.url) as channel:
        channel.queue_delete(cluster.queue())


def freeze_broker(cluster: Cluster) -> None:
    """RabbitMQ answers nothing for longer than a heartbeat."""
    cluster.node.freeze()
    time.sleep(5)
    cluster.node.thaw()


def kill_redis(cluster: Cluster) -> None:
    """Redis is gone for longer than a lock's life, and comes back empty."""
    for server in cluster.redis:
        server.kill()
    time.sleep(3)
    for server in cluster.redis:
        server.start()


def flush_redis(cluster: Cluster) -> None:
    """Redis forgets every lock, several times."""
    for _ in range(5):
        for server in cluster.redis:
            server.flush()
        time.sleep(0.2)


def freeze_redis(cluster: Cluster) -> None:
    """Redis answers nothing for longer than a lock's life, and goes on with what it was told before."""
    for server in cluster.redis:
        server.freeze()
    time.sleep(3)
    for server in cluster.redis:
        server.thaw()


BRIEF = [restart, close_connections, kill_redis]
LONG = [flush_redis, stop_in_order, purge, delete, freeze_broker, freeze_redis]


def all_ended() -> bool:
    return not Job.objects.exclude(state="Succeeded").exists()


def assert_once_each(fleet) -> None:
    starts = [parts[1] for parts in fleet.starts()]
    assert len(starts) == len(set(starts)) == COUNT
    assert JobAttempt.objects.count() == COUNT
    eventually(lambda: not OutboxMessage.objects.filter(kind="dispatch").exists(), "each message is confirmed")
    for worker in fleet.workers:
        assert len(worker.events("worker.ready")) == 1, "a worker was started again"


@pytest.mark.parametrize(
    "fault", [*BRIEF, *(pytest.param(fault, marks=pytest.mark.longo) for fault in LONG)], ids=lambda f: f.__name__
)
def test_in_the_middle_of_two_thousand_jobs(fleet, cluster, fault: Callable[[Cluster], None]):
    for name in WORKERS:
        fleet.start(name, "default:8")
    for worker in fleet.workers:
        worker.wait_ready()
    enqueue_many([JobRequest("probe.async", {"key": str(n), "hold": HOLD}) for n in range(COUNT // 2)])
    eventually(lambda: len(fleet.starts()) > COUNT // 10, "work is under way")

    with suppress(AMQPError):
        fault(cluster)
    enqueue_many([JobRequest("probe.async", {"key": str(n), "hold": HOLD}) for n in range(COUNT // 2, COUNT)])

    eventually(all_ended, "all have ended", 90)
    assert_once_each(fleet)
