"""A job that takes its worker down again and again runs alone in the end: it is condemned, its neighbours are not."""

import signal
from collections import Counter

import pytest

import tests.kit.beats
import tests.kit.deaths
import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, JobAttempt
from tests.crash.beside import QUICK
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
TWICE = {"lost_count": 2, "attempts_used": 2}
MANY = 50


@pytest.fixture
def fleet(fleet):
    # No lease ends here: what comes back was taken back.
    fleet.env |= QUICK | {"TURNO_WORKER__LEASE_DURATION": "60s"}
    fleet.env["TURNO_HANDLERS"] = '["tests.kit.handlers", "tests.kit.beats", "tests.kit.deaths"]'
    return fleet


def suspect(type_, **payload):
    """Enqueue a job that has lost its worker twice already; its id."""
    id_ = enqueue(type_, payload, delay=3600).id
    Job.objects.filter(pk=id_).update(**TWICE)
    transitions.run_now([id_])
    return id_


@pytest.mark.both
def test_a_job_that_always_kills_its_worker_fails_after_three_and_condemns_nobody_who_ran_beside_it(fleet):
    worker = fleet.start("a", "default:8").wait_ready()
    innocent = enqueue_many([JobRequest("beats.async", {"key": f"n{n}", "hold": 1}) for n in range(3)])
    for n in range(3):
        started(fleet, f"n{n}")
    poison = enqueue("deaths.async", {"key": "poison", "hold": 0.1}).id
    dead = wait_state(poison, "Failed", 120)
    assert (dead.failure_kind, dead.lost_count, len(fleet.starts("poison"))) == ("worker_lost", 3, 3)
    assert attempts(poison) == [(n, "WorkerLost", True) for n in (1, 2, 3)]
    assert [step for step in steps(poison) if step[0] == "Processing"] == [
        ("Processing", "Enqueued", "taken_back"),
        ("Processing", "Scheduled", "worker_lost"),
        ("Processing", "Failed", "lost_too_often"),
    ]
    host = dead.attempts.first().worker_host
    assert host
    assert host in dead.error_message
    for made in innocent:
        done = wait_state(made.id, "Succeeded", 60)
        assert done.lost_count <= 2
    assert len(worker.events("worker.ready")) == 4  # three were killed, by nobody but the one
    assert not JobAttempt.objects.filter(outcome="WorkerLost").exclude(job_id=poison).filter(ordinal__gt=2).exists()


def test_a_suspect_runs_when_nothing_else_does_and_nothing_is_claimed_until_it_has_ended(fleet):
    worker = fleet.start("a", "default:4").wait_ready()
    before = [enqueue("beats.async", {"key": f"before{n}"}).id for n in range(2)]
    for n in range(2):
        started(fleet, f"before{n}")
    id_ = suspect("probe.async", key="suspect", hold=1)
    eventually(lambda: worker.events("suspect.waits"), "it waits")
    eventually(lambda: job(id_).started_at is None, "and stands as not begun")
    later = enqueue("probe.async", {"key": "later"}).id
    transitions.cancel(before)
    started(fleet, "suspect")
    assert (job(id_).state, job(later).state) == ("Processing", "Enqueued")
    assert job(id_).started_at > job(id_).claimed_at
    wait_state(id_, "Succeeded")
    wait_state(later, "Succeeded")
    [ended] = [parts[4] for parts in fleet.lines("end") if parts[1] == "suspect"]
    [[*_, began]] = fleet.starts("later")
    assert float(ended) <= float(began)


def test_a_suspect_that_waits_is_not_charged_when_another_job_takes_the_worker_down(fleet, tmp_path):
    worker = fleet.start("a", "default:4").wait_ready()
    now = tmp_path / "now"
    enqueue("deaths.async", {"key": "killer", "when": str(now)})
    started(fleet, "killer")
    id_ = suspect("probe.async", key="suspect")
    eventually(lambda: worker.events("suspect.waits") and job(id_).started_at is None, "it waits")
    now.touch()
    done = wait_state(id_, "Succeeded", 60)
    assert (done.lost_count, attempts(id_)[0]) == (2, (1, "Interrupted", False))
    assert len(fleet.starts("suspect")) == 1


@pytest.mark.longo  # `workers/test_quarantine` has it in one process
def test_suspects_run_one_after_the_other(fleet):
    fleet.start("a", "default:4").wait_ready()
    ids = [suspect(type_, key=type_, hold=0.3) for type_ in ("probe.async", "probe.thread", "probe.process")]
    for id_ in ids:
        wait_state(id_, "Succeeded", 60)
    lines = sorted(fleet.lines("start") + fleet.lines("end"), key=lambda parts: float(parts[4]))
    assert [parts[0] for parts in lines] == ["start", "end"] * 3


def test_a_queue_of_nothing_but_suspects_is_worked_off_one_after_the_other_on_each_worker(fleet):
    """Those that may run at most once among them: waiting is no run."""
    for name in "ab":
        fleet.start(name, "default:8").wait_ready()
    types = ["probe.async", "probe.once", "probe.thread"]
    made = enqueue_many([JobRequest(types[n % 3], {"key": f"{n}", "hold": 0.05}, delay=3600) for n in range(MANY)])
    ids = [one.id for one in made]
    Job.objects.filter(pk__in=ids).update(lost_count=2)
    transitions.run_now(ids)
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded", 120)
    assert Counter(parts[1] for parts in fleet.starts()) == {f"{n}": 1 for n in range(MANY)}
    assert set(Job.objects.values_list("lost_count", "attempts_used")) == {(2, 1)}
    for worker in fleet.workers:
        assert not [event for event in worker.events() if event["level"] in ("error", "critical")]


def test_a_worker_whose_suspect_waits_keeps_no_work_from_the_others(fleet):
    worker = fleet.start("a", "default:4").wait_ready()
    long = enqueue("beats.async", {"key": "long"}).id
    started(fleet, "long")
    id_ = suspect("probe.async", key="suspect")
    eventually(lambda: worker.events("suspect.waits"), "it waits")
    eventually(lambda: job(id_).started_at is None, "and stands as not begun")
    made = enqueue_many([JobRequest("probe.async", {"key": f"{n}"}) for n in range(12)])
    fleet.start("b", "default:2").wait_ready()
    for one in made:
        wait_state(one.id, "Succeeded", 60)
    assert {attempt.worker_name for attempt in JobAttempt.objects.filter(job_id__in=[one.id for one in made])} == {"b"}
    assert job(id_).state == "Processing"
    transitions.cancel([long])
    wait_state(id_, "Succeeded", 60)
    after = enqueue("probe.async", {"key": "after"}, queue="default").id
    wait_state(after, "Succeeded", 60)


def test_a_suspect_that_waits_can_be_cancelled_and_is_given_back_by_a_worker_that_stops(fleet):
    worker = fleet.start("a", "default:4").wait_ready()
    enqueue("beats.async", {"key": "long"})
    started(fleet, "long")
    cancelled = suspect("probe.async", key="cancelled")
    eventually(lambda: len(worker.events("suspect.waits")) == 1, "it waits")
    transitions.cancel([cancelled])
    wait_state(cancelled, "Cancelled")
    assert attempts(cancelled) == [(1, "Cancelled", True)]
    back = suspect("probe.async", key="back")
    eventually(lambda: len(worker.events("suspect.waits")) == 2, "the next one waits")
    worker.signal(signal.SIGTERM)
    eventually(lambda: steps(back)[-1] == ("Processing", "Enqueued", "released"), "it is given back at once")
    assert (job(back).lost_count, attempts(back)) == (2, [(1, "Interrupted", False)])
    assert not fleet.starts("back")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
