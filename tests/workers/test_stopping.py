"""Cancel, SIGTERM and lost leases of a real worker process."""

import signal
import time

import pytest
from django.db import connection, transaction

import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import enqueue
from jobs.models import Worker
from tests.database.scratch import OUR_LOCKS
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("type_", ["probe.async", "probe.thread"])
def test_a_cancel_reaches_a_running_handler(fleet, type_):
    fleet.start().wait_ready()
    id_ = enqueue(type_, {"key": "c", "hold": 600}).id  # longer than anybody waits here
    started(fleet, "c")
    assert transitions.cancel([id_], actor="ana", reason="wrong client")[0].requested
    done = wait_state(id_, "Cancelled")
    assert attempts(id_) == [(1, "Cancelled", True)]
    assert steps(id_)[-1] == ("Processing", "Cancelled", "cancelled")
    assert done.changes.order_by("id").last().actor == "ana"
    assert not fleet.lines("end")
    wait_state(enqueue(type_, {"key": "next"}).id, "Succeeded")


def test_a_coroutine_that_never_asks_is_cancelled_all_the_same(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.timeout", {"key": "deaf", "hold": 60}, timeout=120).id
    started(fleet, "deaf")
    transitions.cancel([id_])
    wait_state(id_, "Cancelled")


def test_a_cancel_is_found_by_polling_when_no_notification_comes(fleet):
    fleet.start(TURNO_WORKER__CANCEL_POLL_INTERVAL="100ms").wait_ready()
    id_ = enqueue("probe.async", {"key": "quiet", "hold": 60}).id
    started(fleet, "quiet")
    # A request by plain SQL sends no NOTIFY: the next renewal of the lease finds it.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE turno.jobs SET cancel_requested_at = now() WHERE id = %s", [id_])
    wait_state(id_, "Cancelled")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_stop_lets_a_running_job_finish_within_its_grace(fleet, number):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "20s").wait_ready()
    id_ = enqueue("probe.async", {"key": "short", "hold": 1}).id
    started(fleet, "short")
    worker.signal(number)
    assert worker.wait() == 0
    assert job(id_).state == "Succeeded"
    assert len(fleet.starts("short")) == 1
    assert Worker.objects.get(name="a").state == "Offline"


@pytest.mark.parametrize("type_", ["probe.async", "probe.thread"])
def test_sigterm_returns_what_does_not_finish_without_counting_it(fleet, type_):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "200ms").wait_ready()
    id_ = enqueue(type_, {"key": "long", "hold": 60}).id
    started(fleet, "long")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    back = job(id_)
    assert (back.state, back.attempts_used, back.lost_count) == ("Enqueued", 0, 0)
    assert attempts(id_) == [(1, "Interrupted", False)]
    assert steps(id_)[-1] == ("Processing", "Enqueued", "released")
    fleet.start("b").wait_ready()
    started(fleet, "long", times=2)


@pytest.mark.parametrize("type_", ["probe.async", "probe.thread"])
def test_a_handler_that_ignores_the_end_dies_with_the_process_before_its_job_returns(fleet, type_):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "200ms").wait_ready()
    id_ = enqueue(type_, {"key": "deaf", "hold": 60, "ignore_cancel": True}).id
    started(fleet, "deaf")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    back = job(id_)
    assert (back.state, back.attempts_used, back.lost_count) == ("Enqueued", 0, 0)
    assert attempts(id_) == [(1, "Interrupted", False)]
    assert Worker.objects.get(name="a").state == "Offline"
    assert not fleet.lines("end")


def test_a_second_sigterm_returns_everything_at_once(fleet):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "300s").wait_ready()
    id_ = enqueue("probe.async", {"key": "long", "hold": 600}).id
    started(fleet, "long")
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.events("worker.stopping"), "it is stopping")
    assert worker.process.poll() is None
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert job(id_).state == "Enqueued"


def test_no_job_is_claimed_after_sigterm(fleet):
    worker = fleet.start("a", "default:1", "--shutdown-timeout", "20s").wait_ready()
    first = enqueue("probe.async", {"key": "first", "hold": 1}).id
    started(fleet, "first")
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.events("worker.stopping"), "it is stopping")
    later = enqueue("probe.async", {"key": "later"}).id
    assert worker.wait() == 0
    assert (job(first).state, job(later).state) == ("Succeeded", "Enqueued")
    assert not fleet.starts("later")


def test_a_job_that_may_run_at_most_once_ends_failed_at_shutdown(fleet):
    worker = fleet.start("a", "default:1", "--shutdown-timeout", "100ms").wait_ready()
    id_ = enqueue("probe.once", {"key": "once", "hold": 60}).id
    started(fleet, "once")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    dead = job(id_)
    assert (dead.state, dead.failure_kind) == ("Failed", "interrupted")


def test_a_worker_ends_in_time_although_its_last_words_reach_no_database(fleet):
    worker = fleet.start("a").wait_ready()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE turno.workers IN ACCESS EXCLUSIVE MODE")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_claim_that_takes_long_at_the_end_is_given_back_and_not_started(fleet):
    worker = fleet.start("a", "default:1", "--shutdown-timeout", "100ms").wait_ready()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE turno.jobs IN EXCLUSIVE MODE")
        id_ = enqueue("probe.async", {"key": "late", "hold": 60}).id
        eventually(lambda: waits_for_jobs(cursor), "the claim waits for the table")
        worker.signal(signal.SIGTERM)
        eventually(lambda: worker.events("worker.stopping"), "it is stopping")
        time.sleep(7)  # longer than the worker waits for the claim, shorter than for the ledger's end
    assert worker.wait() == 0
    back = job(id_)
    assert (back.state, back.attempts_used, back.lost_count) == ("Enqueued", 0, 0)
    assert not fleet.starts("late")


def waits_for_jobs(cursor):
    """Whether somebody waits for a lock on the table of jobs."""
    cursor.execute(f"{OUR_LOCKS} AND relation = 'turno.jobs'::regclass AND NOT granted")
    return cursor.fetchone()[0]
