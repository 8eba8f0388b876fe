"""The samples as jobs: enqueued, drained, and what their demonstrations of trouble become."""

import pytest

from jobs.models import DeadLetter, Job
from tests.samples.payloads import PAYLOADS, each_sample
from turno.jobs import enqueue
from turno.samples import DEMO_TYPES
from turno.testing import assert_enqueued, drain, frozen_time, refute_enqueued, run_job

pytestmark = pytest.mark.django_db


def test_all_are_run_in_the_queues_that_they_declare():
    assert set(PAYLOADS) == set(DEMO_TYPES)
    for name, payload in PAYLOADS.items():
        enqueue(name, payload)
    assert_enqueued("notification.send", payload=PAYLOADS["notification.send"], queue="critical")
    assert_enqueued("report.generate", payload={"rows": 20}, queue="reports", delay=0)
    drained = drain()
    assert {run.type for run in drained.succeeded} == set(PAYLOADS)
    assert all(run.stages and run.logs and run.progress == 100 for run in drained)
    refute_enqueued()


@each_sample
def test_a_job_has_the_result_and_the_files_that_its_handler_has_alone(name):
    enqueue(name, PAYLOADS[name])
    [run] = drain()
    alone = run_job(name, PAYLOADS[name])
    assert (run.result, sorted(run.files)) == (alone.result, sorted(alone.files))
    assert Job.objects.get(id=run.job_id).result == run.result


@each_sample
def test_one_that_fails_twice_succeeds_in_its_third_attempt(name):
    with frozen_time("2026-03-01T09:00:00Z") as clock:
        enqueue(name, {**PAYLOADS[name], "fail": "error", "fail_times": 2})
        assert len(drain(with_failures="record").retried) == 1
        assert_enqueued(name, count=1)
        drained = drain(with_scheduled=3600, with_failures="record")
        assert [run.attempt for run in drained] == [2, 3]
        assert [len(drained.retried), len(drained.succeeded)] == [1, 1]
        assert drained.runs[-1].at < clock.now


@each_sample
def test_one_that_will_never_work_leaves_a_dead_letter_at_once(name):
    enqueue(name, {**PAYLOADS[name], "fail": "permanent"})
    [run] = drain(with_failures="record").failed
    letter = DeadLetter.objects.get()
    assert (letter.job_id, letter.error_type) == (run.job_id, "PermanentJobError")
    refute_enqueued(name)
