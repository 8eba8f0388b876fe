"""turno.testing: how the runs of a drain end, as a worker would have ended them."""

import time

import pytest
from pydantic import BaseModel

from jobs.errors import Invalid, ResultError
from jobs.models import DeadLetter, Job, JobAttempt
from tests.handlers_api.drained import declare, run_one
from turno.handlers import JobCancelled, JobTimeout, PermanentJobError, Snooze, TransientJobError
from turno.jobs import cancel, enqueue
from turno.testing import drain, enqueued, temporary_types

pytestmark = pytest.mark.django_db


def test_a_failed_attempt_raises_what_the_handler_raised_and_is_written():
    def work(ctx, payload):
        raise ValueError("no")

    job = enqueue(declare("drain.failing", work), {"n": 1})
    enqueue("drain.failing", {"n": 2})
    with pytest.raises(ValueError, match=r"^no") as failure:
        drain()
    assert str(failure.value) == "no"
    assert failure.value.__notes__ == ["while drain() ran drain.failing (attempt 1 of 5, {'n': 1})"]
    assert failure.traceback[-1].name == "work"
    row = Job.objects.get(id=job.id)
    assert (row.state, row.waiting_for, row.attempts_used, row.error_message) == ("Scheduled", "retry", 1, "no")
    assert len(enqueued("drain.failing")) == 2


def test_every_end_is_told_apart():
    def work(ctx, payload):
        match payload["do"]:
            case "fail":
                raise ValueError("no")
            case "permanent":
                raise PermanentJobError("never")
            case "snooze":
                raise Snooze(30, "later")
            case "cancel":
                cancel(ctx.job_id)
                raise JobCancelled("as you wish")
            case "unstorable":
                return {"it": object()}
        return payload["do"]

    declare("drain.each", work)
    for do in ("fail", "permanent", "snooze", "cancel", "unstorable", "work"):
        enqueue("drain.each", {"do": do})
    drained = drain(with_failures="record")
    assert len(drained) == 6
    assert drained.results == ["work"]
    assert [run.payload["do"] for run in drained.succeeded] == ["work"]
    assert [run.payload["do"] for run in drained.failed] == ["permanent", "unstorable"]
    assert [run.payload["do"] for run in drained.cancelled] == ["cancel"]
    assert [(run.payload["do"], run.delay) for run in drained.snoozed] == [("snooze", 30)]
    [retried] = drained.retried
    assert (retried.payload["do"], type(retried.error)) == ("fail", ValueError)
    assert 12 <= retried.delay <= 18
    assert isinstance(drained.failed[1].error, ResultError)
    assert not drained.discarded
    letters = DeadLetter.objects.order_by("created_at", "id").values_list("error_type", "error_message")
    assert ("PermanentJobError", "never") in letters
    assert len(letters) == 2
    assert str(drained).splitlines()[0] == "drain.each attempt 1: Failed, now Scheduled: ValueError: no"


def test_a_job_that_is_taken_from_its_run_is_discarded():
    run = run_one(lambda ctx: str(Job.objects.filter(id=ctx.job_id).delete()))
    assert (run.state, run.outcome) == (None, "Succeeded")


def test_attempts_are_counted_until_a_dead_letter():
    def work(ctx):
        raise ValueError(f"attempt {ctx.attempt} of {ctx.max_attempts}")

    enqueue(declare("drain.hopeless", work, max_attempts=3), unique_key="only")
    drained = drain(with_scheduled=True, with_failures="record")
    assert [len(drained.retried), len(drained.failed)] == [2, 1]
    assert DeadLetter.objects.get().error_message == "attempt 3 of 3"
    assert not enqueue("drain.hopeless", unique_key="only").duplicate


def test_transient_errors_are_tried_again_at_once_and_without_their_pause():
    seen = []

    def work(ctx):
        seen.append(ctx.attempt)
        if len(seen) < 3:
            raise TransientJobError("a moment")
        return "done"

    run = run_one(work)
    assert (run.result, seen) == ("done", [1, 1, 1])
    assert JobAttempt.objects.get().tries == 3


def test_a_job_that_may_run_once_is_not_repeated():
    def work(ctx):
        raise TransientJobError("a moment")

    run = run_one(work, at_most_once=True)
    assert (run.state, JobAttempt.objects.get().tries) == ("Failed", 1)


class Rows(BaseModel):
    rows: int


def changed(ctx, payload: Rows):
    """Never comes to this."""


def test_a_payload_that_fits_no_more_is_a_permanent_error():
    with temporary_types():
        enqueue(declare("drain.changed", lambda ctx, payload: None), {"rows": "many"})
    declare("drain.changed", changed)
    [run] = drain(with_failures="record")
    assert run.state == "Failed"
    assert isinstance(run.error, Invalid)


def test_an_async_handler_is_stopped_at_its_time_limit():
    async def work(ctx):
        await ctx.asleep(3600)

    run = run_one(work, timeout=0.05)
    assert (run.outcome, run.state) == ("TimedOut", "Scheduled")
    assert isinstance(run.error, JobTimeout)
    with pytest.raises(JobTimeout, match=r"0[.,]05"):
        drain(with_scheduled=True)


def test_a_plain_handler_that_took_too_long_is_found_to_have():
    run = run_one(lambda ctx: time.sleep(0.02), timeout=0.001)
    assert (run.outcome, type(run.error)) == ("TimedOut", JobTimeout)


def test_an_exit_ends_the_job_and_not_the_tests():
    def work(ctx):
        raise SystemExit(3)

    enqueue(declare("drain.exit", work))
    with pytest.raises(RuntimeError, match=r"^SystemExit while drain") as failure:
        drain()
    assert isinstance(failure.value.__cause__, SystemExit)
    [run] = drain(with_scheduled=20, with_failures="record").retried
    assert isinstance(run.error, SystemExit)


def test_ctrl_c_is_yours_and_not_the_handlers():
    def work(ctx):
        raise KeyboardInterrupt

    enqueue(declare("drain.interrupted", work))
    with pytest.raises(KeyboardInterrupt):
        drain(with_failures="record")
