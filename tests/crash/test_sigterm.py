"""SIGTERM: what does not end in time is ended, given back uncharged, and nothing of the worker is left alive."""

import signal

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import JobAttempt, Worker
from tests.crash.beside import ISOLATIONS, QUICK, assert_nothing_beside, begin
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
TYPES = [f"beats.{isolation}" for isolation in ISOLATIONS]


@pytest.fixture
def fleet(fleet):
    # No lease ends here, however long it takes to give the jobs back.
    fleet.env |= QUICK | {"TURNO_WORKER__LEASE_DURATION": "60s"}
    return fleet


def assert_returned(ids):
    for id_ in ids:
        back = job(id_)
        assert (back.attempts_used, back.lost_count) == (0, 0)
        assert attempts(id_)[0] == (1, "Interrupted", False)
        assert next(step for step in steps(id_) if step[0] == "Processing") == ("Processing", "Enqueued", "released")


def stops_with_deaf_handlers(fleet, types, **env):
    """A worker is told to stop, its handlers take no notice, and another one stands by. Their jobs' ids."""
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "300ms", **env).wait_ready()
    ids = [begin(fleet, type_, deaf=True) for type_ in types]
    fleet.start("b", "default:4").wait_ready()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert fleet.living("a") == []
    for type_ in types:
        started(fleet, type_, times=2)
        assert_nothing_beside(fleet, type_)
    return ids


@pytest.mark.parametrize("types", [TYPES[:2], TYPES[2:]], ids=["async and thread", "process"])
def test_handlers_that_ignore_it_are_killed_and_their_jobs_start_elsewhere(fleet, types):
    assert_returned(stops_with_deaf_handlers(fleet, types))
    assert Worker.objects.get(name="a").state == "Offline"


@pytest.mark.both
def test_after_sigterm_nothing_starts_there_and_others_take_what_waits_while_the_running_job_goes_on(fleet):
    worker = fleet.start("a", "default:1", "--shutdown-timeout", "300s").wait_ready()
    id_ = begin(fleet, "beats.async")
    waiting = [enqueue("probe.async", {"key": f"before{n}"}).id for n in range(3)]
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.events("worker.stopping"), "it is stopping")
    waiting += [enqueue("probe.async", {"key": f"after{n}"}).id for n in range(3)]
    fleet.start("b", "default:2").wait_ready()
    for waits in waiting:
        wait_state(waits, "Succeeded", 60)
    assert set(JobAttempt.objects.values_list("worker_name", flat=True)) == {"b"}
    assert (worker.process.poll(), job(id_).state) == (None, "Processing")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    started(fleet, "beats.async", times=2)
    assert_returned([id_])


def test_a_second_sigterm_gives_everything_back_at_once(fleet):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "300s").wait_ready()
    ids = [begin(fleet, type_) for type_ in TYPES]
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.events("worker.stopping"), "it is stopping")
    assert len(fleet.lines("end")) == 0
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert fleet.living("a") == []
    assert_returned(ids)
    assert {job(id_).state for id_ in ids} == {"Enqueued"}


def test_a_worker_that_is_killed_while_it_stops_leaves_nothing_and_its_supervisor_gives_its_jobs_back(fleet):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "300s").wait_ready()
    ids = [begin(fleet, type_, deaf=True) for type_ in TYPES]
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.events("worker.stopping"), "it is stopping")
    worker.kill_worker()
    assert worker.wait() != 0  # it did not end in order
    assert fleet.living("a") == []
    assert_returned(ids)
