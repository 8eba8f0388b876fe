"""A deploy takes a type away, and a later one brings it back: its jobs wait or fail in sight, and run once."""

import pytest

import tests.kit.handlers  # noqa: F401
from jobs import operations
from jobs.conf import overridden
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import DeadLetter, Job, JobAttempt, KnownType
from jobs.queries import unserved
from tests.kit.look import job, steps, wait_state
from tests.kit.processes import PROJECT, eventually

pytestmark = pytest.mark.crash
QUICK = {"silent_after": 1.0, "heartbeat_interval": 0.5}  # as the fleet's workers have it
WITHOUT = {"TURNO_HANDLERS": "[]", "TURNO_SAMPLES__ENABLED": "true"}
ELSEWHERE = """
from tests.kit.handlers import Mark, probe_async
from turno.handlers import job_type

@job_type("only.there")
async def only_there(ctx, payload: Mark):
    return await probe_async(ctx, payload)
"""


def first_wait(id_):
    """How its time line goes until it is parked for the first time, and after the last time."""
    reasons = [reason for _, _, reason in steps(id_)]
    return reasons[: reasons.index("parked") + 1], reasons[-2:], "gate_opened" in reasons


@pytest.mark.both
def test_a_type_that_a_rollback_took_away_waits_in_sight_and_runs_once_when_it_is_back(fleet):
    fleet.start("old", **WITHOUT).wait_ready()
    ids = [made.id for made in enqueue_many([JobRequest("probe.async", {"key": str(n)}) for n in range(3)])]
    eventually(lambda: Job.objects.filter(waiting_for="unknown_type").count() == 3, "all are parked")
    with overridden(worker=QUICK):
        [seen] = eventually(unserved, "somebody is told")
    assert (seen.queue, seen.type, seen.jobs, seen.at_least) == ("default", "probe.async", 3, False)
    assert seen.fails_in > 3000
    operations.cancel(ids[2])
    fleet.start("new").wait_ready()
    for id_ in ids[:2]:
        done = wait_state(id_, "Succeeded", 60)
        assert (done.executions, done.attempts_used) == (1, 1)
        assert first_wait(id_) == (["created", "parked"], ["claimed", "succeeded"], True)
    assert job(ids[2]).state == "Cancelled"
    assert sorted(parts[1] for parts in fleet.starts()) == ["0", "1"]
    with overridden(worker=QUICK):
        eventually(lambda: unserved() == [], "it is no concern any more")
    assert KnownType.objects.get(name="probe.async").last_served_at is not None


def test_what_has_waited_for_the_grace_fails_without_an_attempt_and_a_requeue_runs_it_once(fleet):
    fleet.start("old", TURNO_RESILIENCE__UNKNOWN_TYPE_GRACE="1s", **WITHOUT).wait_ready()
    made = enqueue("probe.async", {"key": "k"})
    wait_state(made.id, "Failed", 60)
    failed = job(made.id)
    assert (failed.failure_kind, failed.attempts_used, failed.executions) == ("unknown_type", 0, 0)
    assert [reason for _, _, reason in steps(made.id)] == ["created", "parked", "unknown_type"]
    assert DeadLetter.objects.get(job_id=made.id).failure_kind == "unknown_type"
    assert not JobAttempt.objects.exists()
    fleet.start("new").wait_ready()
    operations.requeue(made.id)
    wait_state(made.id, "Succeeded", 60)
    assert len(fleet.starts("k")) == 1


@pytest.mark.both
def test_what_is_accepted_without_a_handler_here_runs_where_there_is_one(fleet, tmp_path):
    """Its payload is looked at there: one that does not fit is an error that no repetition mends."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "only_there.py").write_text(ELSEWHERE)
    with overridden(api={"unknown_types": "accept"}):
        fits, unfit = (enqueue("only.there", payload).id for payload in ({"key": "k"}, {"key": "u", "hold": "long"}))
    fleet.start(TURNO_HANDLERS='["only_there"]', PYTHONPATH=f"{PROJECT}:{folder}").wait_ready()
    assert wait_state(fits, "Succeeded", 60).executions == 1
    failed = wait_state(unfit, "Failed", 60)
    assert (failed.failure_kind, failed.executions) == ("permanent", 1)
    assert [parts[1] for parts in fleet.starts()] == ["k"]
