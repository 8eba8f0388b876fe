"""Guards of real workers: taken away by a module that the worker imports (`mutants`), in the crash tests' scenarios."""

from collections import Counter

import pytest
from django.db import connection

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job, JobAttempt, JobStateChange
from tests.crash.test_cut_off import cut_off
from tests.crash.test_sigkill import PATIENT, QUICK, orphaned
from tests.crash.test_sigterm import TYPES, stops_with_deaf_handlers
from tests.database.scratch import ADVISORY_LOCKS
from tests.kit.processes import eventually
from tests.transitions.recurring import make_many
from tests.transitions.rows import ago, make_job

pytestmark = pytest.mark.crash
BESIDE = "an execution ran beside its successor"


@pytest.fixture
def fleet(fleet):
    fleet.env |= QUICK | {"TURNO_REDIS__LOCKS": "off"}  # which would make up for a missing guard
    fleet.env["TURNO_HANDLERS"] = '["tests.kit.handlers", "tests.kit.beats", "tests.laws.mutants"]'
    return fleet


def test_a_worker_that_gives_its_jobs_back_before_their_handlers_are_dead_runs_them_beside_others(fleet):
    """Law 1, kill before release."""
    fleet.env |= PATIENT
    with pytest.raises(AssertionError, match=BESIDE):
        stops_with_deaf_handlers(fleet, TYPES[:1], MUTANT="release_first")


def test_a_take_back_without_a_kill_runs_a_job_beside_what_its_last_execution_left(fleet):
    """Law 3, kill before take-back."""
    fleet.env |= PATIENT
    with pytest.raises(AssertionError, match=BESIDE):
        orphaned(fleet, MUTANT="take_back_first")


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_worker_that_counts_no_deadline_runs_jobs_beside_its_successors(fleet, isolation):
    """Law 3, the deadline."""
    with pytest.raises(AssertionError, match=BESIDE):
        cut_off(fleet, [f"beats.{isolation}"], deaf=True, MUTANT="no_deadline")


def test_when_everybody_leads_nothing_runs_twice(fleet):
    """Law 5: the lease row saves work, and guards nothing. (There are no advisory locks: see the next test.)"""
    fleet.env |= {"MUTANT": "everybody_leads", "TURNO_RESILIENCE__BREAKER": "false"}  # the good wait for no bad ones
    for name in ("a", "b", "c"):
        fleet.start(name, "default:4").wait_ready()
    types = ("probe.async", "probe.thread", "probe.process")
    enqueue_many([JobRequest(types[n % 3], {"key": f"once-{n}"}) for n in range(150)])
    enqueue_many([JobRequest(types[n % 3], {"key": f"later-{n}"}, delay=1.0) for n in range(150)])
    enqueue_many([JobRequest("probe.async", {"key": f"bad-{n}", "fail": "error"}, max_attempts=2) for n in range(50)])
    lost = [make_job("Processing", type="probe.async", payload={"key": f"lost-{n}"}, lease_expires_at=ago(99))
            for n in range(50)]  # fmt: skip
    make_many(50, type="'probe.async'", payload="jsonb_build_object('key', 'fired-' || n)", cron="'0 0 1 1 *'")
    eventually(lambda: not Job.objects.exclude(state__in=["Succeeded", "Failed"]).exists(), "all have ended")
    counts = Counter((parts[1], parts[2]) for parts in fleet.starts())
    assert set(counts.values()) == {1}, "an execution was started twice"
    assert len(counts) == 150 + 150 + 2 * 50 + len(lost) + 50
    assert JobStateChange.objects.filter(reason="due").count() == 150 + 50
    assert Job.objects.filter(recurring_job_id__isnull=False).count() == 50
    assert JobAttempt.objects.filter(outcome="WorkerLost").count() == len(lost)
    assert set(Job.objects.filter(pk__in=[made.id for made in lost]).values_list("lost_count", flat=True)) == {1}


def test_no_worker_holds_an_advisory_lock(fleet):
    """Law 5: none is there to be switched off."""
    fleet.start("a").wait_ready()
    enqueue_many([JobRequest("probe.async", {"key": str(n)}) for n in range(20)])
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have ended")
    with connection.cursor() as cursor:
        cursor.execute(ADVISORY_LOCKS)
        assert cursor.fetchone() == (0,)
