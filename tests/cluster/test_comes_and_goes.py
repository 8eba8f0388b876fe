"""A broker that is restarted, closes connections, or is away for long; handlers that leave no time for heartbeats."""

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, OutboxMessage
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import raw

pytestmark = pytest.mark.crash
WORKERS = "ab"


def enqueue_some(what: str, count: int = 20, **more) -> None:
    enqueue_many([JobRequest("probe.async", {"key": f"{what}-{n}"}, **more) for n in range(count)])


def all_ended() -> bool:
    return not Job.objects.exclude(state="Succeeded").exists()


def consumers(cluster) -> int:
    """How many workers consume the queue."""
    with raw(cluster.node.url) as channel:
        return int(channel.queue_declare(cluster.queue(), passive=True).method.consumer_count)


def assert_once_each(fleet, count: int) -> None:
    starts = [parts[1] for parts in fleet.starts()]
    assert len(starts) == len(set(starts)) == count
    eventually(lambda: not OutboxMessage.objects.exists(), "each message is confirmed")
    for worker in fleet.workers:
        assert len(worker.events("worker.ready")) == 1, "a worker was started again"


@pytest.mark.longo
def test_three_restarts_and_five_closings_later_every_worker_consumes_by_itself(fleet, cluster):
    for name in WORKERS:
        fleet.start(name, "default:4").wait_ready()
    enqueue_some("before")
    eventually(all_ended, "work goes on")
    for n in range(3):
        (cluster.node.stop if n % 2 else cluster.node.kill)()
        enqueue_some(f"away-{n}")
        cluster.node.start()
    for n in range(5):
        cluster.node.ctl("close_all_connections", "a test")
        enqueue_some(f"closed-{n}")
    enqueue_some("after")
    eventually(all_ended, "all have ended")
    eventually(lambda: consumers(cluster) == len(WORKERS), "every worker consumes")
    assert_once_each(fleet, 200)


def test_what_was_enqueued_while_the_broker_was_away_runs_when_it_is_back(fleet, cluster):
    worker = fleet.start("a", "default:4").wait_ready()
    cluster.node.stop()
    eventually(lambda: worker.events("broker.away"), "it is noticed")
    enqueue_some("away", 100)
    enqueue_some("later", 10, delay=1.0)
    eventually(lambda: OutboxMessage.objects.count() == 110, "what is due waits in the outbox")
    assert not OutboxMessage.objects.filter(failures__gt=0).exists()
    assert not fleet.starts()
    cluster.node.start()
    eventually(all_ended, "all have ended")
    assert_once_each(fleet, 110)


def test_jobs_that_are_not_due_yet_are_no_messages(fleet, cluster):
    fleet.start("a", "default:2").wait_ready()
    enqueue_some("later", 20, delay=3600.0)
    enqueue_some("now", 1)
    eventually(lambda: len(fleet.starts()) == 1, "what is due runs")
    eventually(lambda: not OutboxMessage.objects.exists(), "it was announced")
    eventually(lambda: cluster.depth() == 0, "nothing waits with the broker")
    assert Job.objects.filter(state="Scheduled").count() == 20


@pytest.mark.parametrize("type_", ["probe.async", "probe.thread"])
def test_handlers_that_never_yield_cost_no_heartbeat(fleet, cluster, type_):
    """They share the interpreter with the engine, whose heartbeats are due twice a second."""
    fleet.env["TURNO_MESSAGING__HEARTBEAT"] = "1s"
    worker = fleet.start("a", "default:3").wait_ready()
    for n in range(3):
        enqueue(type_, {"key": str(n), "spin": 2.0 if type_ == "probe.async" else 6.0})
    eventually(all_ended, "all have ended", 90)
    assert_once_each(fleet, 3)
    assert worker.events("broker.away") == []
    assert cluster.depth() == 0
