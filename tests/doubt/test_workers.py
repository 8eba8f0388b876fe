"""Real workers whose answers are lost on the way: every job runs as often as its table says, and no more."""

import signal
from collections import Counter
from itertools import product

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, JobAttempt, JobLog
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash
# Texts that only the transaction of one verb holds.
CLAIM = "'claimed'"
END = "INSERT INTO turno.job_attempts"
NOTE = "SET progress = GREATEST"
TYPES = ["probe.async", "probe.thread", "probe.process"]
ENDS = {
    "success": ({}, "Succeeded", ["Succeeded"]),
    "failure": ({"fail": "permanent"}, "Failed", ["Failed"]),
    "retry": ({"fail": "error"}, "Failed", ["Failed", "Failed"]),
    "snooze": ({"snooze": 0.1}, "Succeeded", ["Snoozed", "Succeeded"]),
}


@pytest.fixture
def proxy(fleet):
    """Between every worker of the fleet and the database."""
    with Proxy(database_url()) as made:
        fleet.env["TURNO_DATABASE__URL"] = made.url
        yield made


def test_a_job_whose_claim_was_never_answered_is_returned_uncharged_and_runs_once(fleet, proxy):
    fleet.start("a").wait_ready()
    for type_ in TYPES:
        trap = proxy.swallow_commit(CLAIM, times=2)
        id_ = enqueue(type_, {"key": type_}).id
        done = wait_state(id_, "Succeeded")
        assert trap.caught == 2
        assert attempts(id_) == [(1, "Interrupted", False), (2, "Interrupted", False), (3, "Succeeded", True)]
        assert (done.attempts_used, done.lost_count) == (1, 0)
        assert len(fleet.starts(type_)) == 1
        ends = [step[1:] for step in steps(id_) if step[0] == "Processing"]
        assert ends == [("Enqueued", "released")] * 2 + [("Succeeded", "succeeded")]


def test_a_claim_and_the_return_of_its_job_may_both_go_unanswered(fleet, proxy):
    fleet.start("a").wait_ready()
    claim, back = proxy.swallow_commit(CLAIM), proxy.swallow_commit(END)
    id_ = enqueue("probe.once", {"key": "k"}).id
    wait_state(id_, "Succeeded")
    assert (claim.caught, back.caught) == (1, 1)
    assert attempts(id_) == [(1, "Interrupted", False), (2, "Succeeded", True)]
    assert len(fleet.starts("k")) == 1


def test_an_end_that_was_never_answered_is_not_run_again(fleet, proxy):
    worker = fleet.start("a").wait_ready()
    ended = 0
    for type_, (end, (payload, state, outcomes)) in product(TYPES, ENDS.items()):
        key = f"{end}-{type_}"
        trap = proxy.swallow_commit(END, times=2)
        id_ = enqueue(type_, {"key": key, **payload}, max_attempts=2).id
        wait_state(id_, state)
        ended += len(outcomes)
        eventually(lambda: len(worker.events("job.ended")) == ended, "the worker knows of its ends")  # noqa: B023
        assert trap.caught == 2
        assert [outcome for _, outcome, _ in attempts(id_)] == outcomes
        assert len(fleet.starts(key)) == len(outcomes)
    assert not JobAttempt.objects.filter(discarded_at__isnull=False).exists()
    assert not worker.events("job.discarded")


def test_returns_at_shutdown_that_were_never_answered_are_done_once(fleet, proxy):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "100ms").wait_ready()
    ids = [enqueue(type_, {"key": type_, "hold": 60}).id for type_ in TYPES]
    for type_ in TYPES:
        started(fleet, type_)
    trap = proxy.swallow_commit(END)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert trap.caught == 1
    for id_ in ids:
        assert attempts(id_) == [(1, "Interrupted", False)]
        assert (job(id_).state, job(id_).attempts_used) == ("Enqueued", 0)


def test_a_release_by_the_supervisors_program_that_was_never_answered_is_done_once(fleet, proxy):
    """The handler takes no notice, so the worker leaves it running, and what gives its job back is another process."""
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "100ms").wait_ready()
    id_ = enqueue("probe.thread", {"key": "k", "hold": 60, "ignore_cancel": True}).id
    started(fleet, "k")
    trap = proxy.swallow_commit(END)
    worker.signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    eventually(lambda: worker.events("supervisor.released"), "it says supervisor.released")
    assert trap.caught == 1
    assert attempts(id_) == [(1, "Interrupted", False)]
    assert (job(id_).state, job(id_).attempts_used) == ("Enqueued", 0)


def test_lines_whose_answer_was_lost_are_stored_once(fleet, proxy):
    fleet.start("a").wait_ready()
    trap = proxy.swallow_commit(NOTE, times=3)
    id_ = enqueue("probe.lines", {"key": "k", "hold": 1.5}).id
    done = wait_state(id_, "Succeeded")
    assert trap.caught >= 2
    stored = list(JobLog.objects.filter(job_id=id_).order_by("number").values_list("message", flat=True))
    assert stored == [f"line {n + 1}" for n in range(done.result["said"])]


def test_under_load_with_answers_lost_all_the_time_every_job_starts_exactly_once(fleet, proxy):
    for n in range(2):
        fleet.start(f"w{n}", "default:6").wait_ready()
    enqueue_many([JobRequest(TYPES[n % 3], {"key": str(n), "hold": 0.02}) for n in range(300)])
    caught = 0
    while Job.objects.exclude(state="Succeeded").count() > 60:
        trap = proxy.swallow_commit("turno.jobs", passes=2)
        eventually(lambda trap=trap: trap.caught or not Job.objects.exclude(state="Succeeded").exists(), "one is lost")
        caught += trap.caught
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded")
    assert caught > 10
    counts = Counter(parts[1] for parts in fleet.starts())
    assert (len(counts), set(counts.values())) == (300, {1})
    assert set(JobAttempt.objects.values_list("outcome", "counted")) <= {("Succeeded", True), ("Interrupted", False)}
    assert not JobAttempt.objects.filter(discarded_at__isnull=False).exists()
