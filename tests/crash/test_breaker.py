"""The breaker of a type in a house of real workers: opened by one, obeyed by all, closed by one job that went well."""

import pytest

import tests.kit.handlers  # noqa: F401  (declares the types)
from jobs import transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Circuit, Job, JobAttempt, JobStateChange
from jobs.operations import cancel
from tests.kit.look import started, wait_state
from tests.kit.processes import eventually
from tests.transitions.rows import ago, execute

pytestmark = pytest.mark.crash
TYPE = "probe.async"
NEVER = "1h"  # until somebody says that the time has come


@pytest.fixture
def workers(fleet):
    """Two workers, whose breakers stay open until `its_time_comes`."""
    return [fleet.start(name, "default:8", TURNO_RESILIENCE__BREAKER_OPEN_FOR=NEVER).wait_ready() for name in "ab"]


def state():
    return Circuit.objects.values_list("state", flat=True).filter(type=TYPE).first()


def its_time_comes():
    execute(f"UPDATE turno.circuits SET retry_at = {ago(1)} WHERE state = 'open'")


def break_it():
    """Enough failures for one of two workers' windows, whichever of them runs how many."""
    enqueue_many([JobRequest(TYPE, {"key": f"bad-{n}", "fail": "error"}, max_attempts=1) for n in range(20)])
    eventually(lambda: state() == "open", "the breaker is open")
    busy = Job.objects.filter(state__in=["Enqueued", "Processing"])
    eventually(lambda: not busy.exists(), "what was running has ended, what was not is parked")
    Job.objects.filter(state="Scheduled").delete()  # failures that did not run any more


def parked():
    return Job.objects.filter(state="Scheduled", waiting_for="circuit", gate=TYPE)


@pytest.mark.both
def test_a_thousand_jobs_wait_parked_once_each_and_run_when_one_has_succeeded(fleet, workers):
    break_it()
    good = [job.id for job in enqueue_many([JobRequest(TYPE, {"key": f"good-{n}"}) for n in range(1000)])]
    other = enqueue("probe.thread", {"key": "other"}).id
    wait_state(other, "Succeeded")
    eventually(lambda: parked().count() == 1000, "all are parked")
    assert not [line for line in fleet.starts() if line[1].startswith("good")]
    its_time_comes()
    eventually(lambda: Job.objects.filter(id__in=good, state="Succeeded").count() == 1000, "all have run", 120)
    assert state() == "closed"
    assert len([line for line in fleet.starts() if line[1].startswith("good")]) == 1000
    changes = JobStateChange.objects.filter(job_id__in=good)
    assert changes.filter(reason="circuit_open").count() == 1000
    assert changes.filter(reason="gate_opened").count() == 1000
    assert set(Job.objects.filter(id__in=good).values_list("attempts_used", flat=True)) == {1}


def test_only_the_probe_runs_and_when_it_fails_the_others_go_on_waiting(fleet, workers):
    break_it()
    bad = enqueue(TYPE, {"key": "probe", "fail": "error"}, priority=5, max_attempts=1).id
    enqueue_many([JobRequest(TYPE, {"key": f"good-{n}"}) for n in range(30)])
    eventually(lambda: parked().count() == 31, "all are parked")
    its_time_comes()
    wait_state(bad, "Failed")
    assert state() == "open"
    eventually(lambda: parked().count() == 30, "the others wait on")
    assert not [line for line in fleet.starts() if line[1].startswith("good")]
    its_time_comes()
    eventually(lambda: not Job.objects.filter(state__in=["Scheduled", "Enqueued", "Processing"]).exists(), "all ran")
    assert state() == "closed"


def test_a_probe_that_ends_in_any_way_but_success_leaves_the_way_free_for_the_next(fleet, workers):
    break_it()
    held, slow, bad, late = (
        enqueue(TYPE, asked, priority=9 - n, max_attempts=1, **more).id
        for n, (asked, more) in enumerate([
            ({"key": "held", "hold": 600}, {}),
            ({"key": "slow", "hold": 600}, {"timeout": 1}),
            ({"fail": "permanent"}, {}),
            ({"snooze": 3600}, {}),
        ])
    )  # fmt: skip
    good = enqueue(TYPE, {"key": "good"}).id
    eventually(lambda: parked().count() == 5, "all are parked")
    for job, outcome in ((held, "Cancelled"), (slow, "TimedOut"), (bad, "Failed"), (late, "Snoozed")):
        its_time_comes()
        if job == held:
            started(fleet, "held")
            assert state() == "half_open"
            cancel(held, actor="ana")
        ended = JobAttempt.objects.filter(job_id=job, outcome=outcome)
        eventually(ended.exists, f"the probe has ended, {outcome}")
        assert state() == "open"
    its_time_comes()
    wait_state(good, "Succeeded")
    assert state() == "closed"


def test_a_probe_that_dies_with_its_worker_leaves_the_way_free_for_the_next(fleet, workers):
    break_it()
    held = enqueue(TYPE, {"key": "held", "hold": 600}, priority=5, max_attempts=1).id
    good = enqueue(TYPE, {"key": "good"}).id
    eventually(lambda: parked().count() == 2, "both are parked")
    its_time_comes()
    pid = int(started(fleet, "held")[0][3])
    next(worker for worker in workers if worker.pid == pid).kill_worker()
    wait_state(held, "Failed")
    eventually(lambda: state() == "open", "open anew")
    its_time_comes()
    wait_state(good, "Succeeded")
    assert state() == "closed"


def test_cancels_snoozes_and_permanent_errors_do_not_open_it(fleet, workers):
    kinds = ({"fail": "permanent"}, {"snooze": 3600}, {"key": "held", "hold": 600})
    jobs = enqueue_many([JobRequest(TYPE, kinds[n % 3]) for n in range(60)])
    ids = [job.id for job in jobs]

    def ended():
        running = Job.objects.filter(id__in=ids, state="Processing").values_list("id", flat=True)
        transitions.cancel(list(running), actor="ana")
        return not Job.objects.filter(id__in=ids, state__in=["Enqueued", "Processing"]).exists()

    eventually(ended, "all have ended or wait")
    good = enqueue(TYPE, {"key": "good"}).id
    wait_state(good, "Succeeded")
    assert state() is None
