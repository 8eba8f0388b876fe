"""Jobs that fail, to their end and beyond it: how often they start, what is kept of them, and what people do then."""

import signal

import pytest

import tests.kit.handlers
import tests.kit.loud  # noqa: F401
from jobs import bulk, operations
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import DeadLetter, Job
from jobs.queries.letterfilter import LetterFilter
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
ISOLATIONS = ("async", "thread", "process")
MANY = 1000


@pytest.fixture
def fleet(fleet):
    fleet.env |= {
        "TURNO_HANDLERS": '["tests.kit.handlers", "tests.kit.loud"]',
        "TURNO_RESILIENCE__BREAKER": "false",
        "TURNO_RESILIENCE__BACKOFF_BASE": "50ms",
    }
    return fleet


@pytest.mark.both
def test_three_attempts_are_three_starts_and_the_letter_holds_the_last_error(fleet):
    fleet.start().wait_ready()
    made = {isolation: enqueue(f"loud.fails_{isolation}", {"key": isolation}).id for isolation in ISOLATIONS}
    for isolation, id_ in made.items():
        dead = wait_state(id_, "Failed", 60)
        assert attempts(id_) == [(n, "Failed", True) for n in (1, 2, 3)]
        assert (dead.attempts_used, dead.run_at, dead.failure_kind) == (3, None, "error")
        assert dead.error_message == "the third time"
        assert [a.error_message for a in dead.attempts.order_by("ordinal")] == [
            "the first time",
            "the second time",
            "the third time",
        ]
        assert [step[2] for step in steps(id_)].count("retry") == 2
        letter = DeadLetter.objects.get(job_id=id_)
        assert (letter.error_message, letter.attempts, letter.resolved_at) == ("the third time", 3, None)
        assert "loud.py" in letter.stack
        assert len(fleet.starts(isolation)) == 3


@pytest.mark.both
def test_one_attempt_is_one_start_however_it_ends(fleet):
    """A failure, a time limit; a stop of the worker gives the job back, and its one attempt with it."""
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "100ms").wait_ready()
    fails = enqueue("loud.fails_async", {"key": "fails"}, max_attempts=1).id
    late = enqueue("probe.process", {"key": "late", "hold": 60}, max_attempts=1, timeout=0.3).id
    for id_, outcome, kind in ((fails, "Failed", "error"), (late, "TimedOut", "timeout")):
        assert wait_state(id_, "Failed", 60).failure_kind == kind
        assert attempts(id_) == [(1, outcome, True)]
        assert [step[2] for step in steps(id_)] == ["created", "claimed", "attempts_used_up"]
    held = enqueue("probe.process", {"key": "held", "hold": 60}, max_attempts=1).id
    started(fleet, "held")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert (job(held).state, attempts(held), job(held).attempts_used) == ("Enqueued", [(1, "Interrupted", False)], 0)
    assert (len(fleet.starts("fails")), len(fleet.starts("late"))) == (1, 1)


@pytest.mark.both
def test_a_thousand_dead_letters_are_requeued_by_their_cause_and_each_job_runs_once(fleet, crew):
    worker = fleet.start("a", "default:50").wait_ready()
    enqueue_many([JobRequest("probe.async", {"key": f"k{n}", "fail": "permanent"}) for n in range(MANY)])
    other = enqueue("loud.fails_async", {"key": "other"}, max_attempts=1).id
    eventually(lambda: DeadLetter.objects.count() == MANY + 1, "all have failed", 120)
    [cause] = set(DeadLetter.objects.filter(type="probe.async").values_list("fingerprint", flat=True))
    Job.objects.filter(type="probe.async").update(payload={"key": "again"})  # what made them fail is mended
    run = bulk.wait(bulk.start("requeue", "letters", filter=LetterFilter(fingerprint=cause), actor="ana").id, 60)
    assert (run.state, run.applied, run.skipped) == ("done", MANY, {})
    eventually(lambda: Job.objects.filter(state="Succeeded").count() == MANY, "all have run", 120)
    assert len(fleet.starts("again")) == MANY
    assert job(other).state == "Failed"
    assert DeadLetter.objects.filter(resolved_at=None).count() == 1
    assert worker.process.poll() is None


def test_a_requeued_job_that_fails_again_has_a_new_letter_and_the_old_one_is_past(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("loud.fails_async", {"key": "again"}, max_attempts=1).id
    wait_state(id_, "Failed", 60)
    first = DeadLetter.objects.get(job_id=id_)
    operations.requeue_letter(first.id, actor="ana")
    second = eventually(lambda: DeadLetter.objects.filter(job_id=id_).exclude(id=first.id).first(), "another letter")
    assert (second.error_message, second.resolved_at) == ("the second time", None)
    assert second.fingerprint != first.fingerprint  # another word: another cause
    first.refresh_from_db()
    assert (first.resolved_how, first.resolved_by) == ("requeued", "ana")
    [refused] = operations.requeue_letters([first.id])
    assert (refused.applied, refused.problem) == (False, "resolved")
    operations.discard_letter(second.id, actor="ana")
    assert (job(id_).state, len(fleet.starts("again"))) == ("Failed", 2)
