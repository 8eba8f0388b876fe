"""The server cuts the workers' connections, idle and busy: everything goes on by itself, nothing is repeated."""

import pytest
from django.db import connection

import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import enqueue
from jobs.models import Job
from tests.kit.look import attempts, job, started, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def terminate():
    """End every connection to the test database but this one; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(TERMINATE)
        return cursor.fetchone()[0]


def lease_end(id_):
    return Job.objects.values_list("lease_expires_at", flat=True).get(pk=id_)


def test_leases_are_renewed_and_cancels_heard_after_every_connection_was_cut(fleet):
    worker = fleet.start("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "long", "hold": 120}).id
    started(fleet, "long")
    for _ in range(2):
        assert terminate() >= 1
        before = lease_end(id_)
        eventually(lambda before=before: (now := lease_end(id_)) and now > before, "the lease is renewed again")
    other = enqueue("probe.thread", {"key": "after"}).id
    wait_state(other, "Succeeded")
    transitions.cancel([id_])
    wait_state(id_, "Cancelled")
    assert len(fleet.starts("long")) == 1
    assert worker.process.poll() is None


def test_a_handlers_own_broken_connection_harms_no_later_handler(fleet):
    fleet.start("a").wait_ready()
    for type_ in ("probe.orm_async", "probe.orm_thread"):
        first = enqueue(type_, {"key": f"{type_}-1"}).id
        wait_state(first, "Succeeded")
        terminate()
        for n in (2, 3):
            id_ = enqueue(type_, {"key": f"{type_}-{n}"}).id
            wait_state(id_, "Succeeded")
            assert job(id_).attempts_used <= 2
        assert attempts(id_) == [(1, "Succeeded", True)]
