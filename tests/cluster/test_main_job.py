"""The main job in the cluster profile: by the outbox to the broker, by a message to a worker, once."""

import pytest
from django.db import connection

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, OutboxMessage
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash


def all_ended() -> bool:
    return not Job.objects.exclude(state__in=["Succeeded", "Failed", "Cancelled"]).exists()


def test_a_job_goes_by_the_broker_and_runs_once(fleet, cluster):
    fleet.start("a").wait_ready()
    made = enqueue("probe.async", {"key": "one"})
    eventually(lambda: Job.objects.get(pk=made.id).state == "Succeeded", "it has run")
    assert len(fleet.starts("one")) == 1
    eventually(lambda: not OutboxMessage.objects.exists(), "each message is confirmed")
    eventually(lambda: cluster.depth() == 0, "its message is acknowledged")


def test_many_jobs_on_two_workers_run_once_each(fleet, cluster):
    for name in "ab":
        fleet.start(name, "default:8").wait_ready()
    enqueue_many([JobRequest("probe.async", {"key": str(n)}) for n in range(500)])
    eventually(all_ended, "all have ended")
    starts = [parts[1] for parts in fleet.starts()]
    assert len(starts) == len(set(starts)) == 500
    eventually(lambda: not OutboxMessage.objects.exists(), "each message is confirmed")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT worker_id) FROM turno.job_attempts")
        assert cursor.fetchone() == (2,)
