"""Cancel of real jobs: running in every isolation, waiting in every way, with the message already at the broker."""

import signal

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs import bulk, transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, JobAttempt, Worker
from jobs.queries import JobFilter
from tests.crash.beside import ISOLATIONS, QUICK, begin
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
TYPES = [f"beats.{isolation}" for isolation in ISOLATIONS]


@pytest.fixture
def fleet(fleet):
    fleet.env |= QUICK | {"TURNO_WORKER__LEASE_DURATION": "60s"}  # no lease ends here
    return fleet


@pytest.mark.both
def test_a_bulk_cancel_by_filter_ends_what_runs_and_what_waits_and_nothing_else(fleet, crew):
    fleet.start("a", "default:3,other:1").wait_ready()
    running = [begin(fleet, type_) for type_ in TYPES]
    other = enqueue("probe.async", {"key": "other", "hold": 3}, queue="other").id
    started(fleet, "other")
    waiting = [made.id for made in enqueue_many([JobRequest("beats.async", {"key": f"w{n}"}) for n in range(20)])]
    waiting.append(enqueue("beats.async", delay=3600).id)
    run = bulk.start("cancel", filter=JobFilter(queue="default"), actor="ana", reason="enough")
    run = bulk.wait(run.id, 60)
    assert (run.state, run.applied, run.skipped) == ("done", len(running) + len(waiting), {})
    for id_ in running:
        wait_state(id_, "Cancelled", 60)
        assert attempts(id_) == [(1, "Cancelled", True)]
        assert steps(id_)[-1] == ("Processing", "Cancelled", "cancelled")
    assert {job(id_).state for id_ in waiting} == {"Cancelled"}
    wait_state(other, "Succeeded", 60)
    wait_state(enqueue("probe.process", {"key": "next"}).id, "Succeeded", 60)  # the slots are free
    assert not [parts for parts in fleet.lines("end") if parts[1].startswith("beats")]
    assert JobAttempt.objects.count() == len(running) + 2


@pytest.mark.both
def test_a_job_that_was_cancelled_while_its_message_waited_is_never_started(fleet, profile, request):
    fleet.start("relay", "other:1").wait_ready()
    ids = [enqueue("probe.async", {"key": f"k{n}"}).id for n in range(3)]
    depth = request.getfixturevalue("cluster").depth if profile == "cluster" else lambda: 0
    if profile == "cluster":
        eventually(lambda: Job.objects.filter(announced_at__isnull=False).count() == 3, "they were announced")
        eventually(lambda: depth() == 3, "and their messages wait")
    assert all(verdict.state == "Cancelled" for verdict in transitions.cancel(ids[:2]))
    fleet.start("a", "default:2").wait_ready()
    wait_state(ids[2], "Succeeded", 60)
    eventually(lambda: depth() == 0, "no message is left")
    assert [job(id_).state for id_ in ids] == ["Cancelled", "Cancelled", "Succeeded"]
    assert [parts[1] for parts in fleet.starts()] == ["k2"]


def test_a_thread_that_takes_no_notice_is_shown_and_its_job_is_cancelled_when_the_worker_ends(fleet):
    worker = fleet.start("a", "default:2", "--shutdown-timeout", "100ms").wait_ready()
    id_ = begin(fleet, "beats.thread", deaf=True)
    transitions.cancel([id_], actor="ana")
    told = eventually(lambda: Worker.objects.get(name="a").problems, "people are told that it runs on")
    assert [(problem["job"], problem["handler"]) for problem in told] == [(str(id_), "beats.thread")]
    assert job(id_).state == "Processing"
    wait_state(enqueue("probe.thread", {"key": "beside"}).id, "Succeeded")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert (job(id_).state, steps(id_)[-1]) == ("Cancelled", ("Processing", "Cancelled", "cancelled"))
    assert fleet.living("a") == []


@pytest.mark.longo  # `races` has it in one process
def test_a_cancel_in_the_middle_of_a_stop_leaves_no_job_to_anybody_else(fleet):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "300s").wait_ready()
    ids = [begin(fleet, type_, deaf=True) for type_ in TYPES]
    worker.signal(signal.SIGTERM)
    eventually(lambda: worker.events("worker.stopping"), "it is stopping")
    transitions.cancel(ids, actor="ana")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    for id_ in ids:
        assert [outcome for _, outcome, _ in attempts(id_)] == ["Cancelled"]
        assert steps(id_)[-1] == ("Processing", "Cancelled", "cancelled")
    assert fleet.living("a") == []
