"""Settle and release: what is kept of an execution, what a late or doubtful owner is told."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.metrics import BUCKETS
from jobs.outcomes import LogLine
from jobs.states import State
from jobs.transitions.finish import FINISH
from tests.transitions import rows
from tests.transitions.edges import CALLER, ERROR, Fence, claimant, ending, lose, make
from tests.transitions.rows import ago, execute

pytestmark = pytest.mark.django_db


def settle(*endings, worker_id=CALLER):
    return transitions.settle(list(endings), worker_id=worker_id)


def running(**columns):
    return make("processing", Fence.RIGHT, **columns)


def test_a_success_keeps_its_result_and_forgets_the_error_of_an_earlier_attempt():
    case = running(error_type="ValueError", error_message="before", progress=40)
    settle(ending(case, State.SUCCEEDED, result='{"rows": [1, 2]}', stage="done"))
    row = rows.job(case.made.id)
    assert (row["result"], row["progress"], row["stage"]) == ({"rows": [1, 2]}, 100, "done")
    assert (row["error_type"], row["error_message"], row["failure_kind"]) == (None, None, None)


def test_a_failure_keeps_its_error_its_progress_and_leaves_a_dead_letter():
    case = running(progress=40, executions=4)
    settle(ending(case, State.FAILED, progress=55))
    row = rows.job(case.made.id)
    assert (row["error_type"], row["error_message"], row["failure_kind"]) == (ERROR.type, ERROR.message, "error")
    assert row["progress"] == 55
    [letter] = rows.letters(case.made.id)
    kept = {key: letter[key] for key in ("type", "queue", "failure_kind", "stack", "fingerprint", "attempts")}
    assert kept == {
        "type": case.made.type,
        "queue": case.made.queue,
        "failure_kind": "error",
        "stack": ERROR.stack,
        "fingerprint": ERROR.fingerprint,
        "attempts": 4,
    }
    [attempt] = rows.attempts(case.made.id)
    assert (attempt["stack"], attempt["error_message"]) == (ERROR.stack, ERROR.message)


def test_a_retry_waits_for_its_delay_by_the_clock_of_the_database():
    case = running(progress=40)
    settle(ending(case, State.SCHEDULED, delay=12.5))
    row = rows.job(case.made.id)
    now = rows.select("SELECT now() AS now")[0]["now"]
    assert (row["run_at"] - now).total_seconds() == 12.5
    assert (row["waiting_for"], row["progress"], row["error_type"]) == ("retry", 0, ERROR.type)


def test_a_snooze_is_not_charged_and_the_last_error_stays():
    case = running(error_type="E", error_message="before", attempts_used=1)
    settle(ending(case, State.SCHEDULED, counted=False, error=None))
    row = rows.job(case.made.id)
    assert (row["attempts_used"], row["error_type"], row["error_message"]) == (1, "E", "before")


def test_attempts_never_exceed_what_is_allowed():
    case = running(attempts_used=3, max_attempts=3)
    settle(ending(case, State.FAILED))
    assert rows.job(case.made.id)["attempts_used"] == rows.attempts(case.made.id)[0]["attempt"] == 3


def test_the_lines_of_the_log_keep_their_numbers_levels_and_ages():
    case = running()
    lines = (LogLine(1, "info", "first", 2.0), LogLine(2, "warning", "second"), LogLine(1, "info", "again"))
    settle(ending(case, State.SUCCEEDED, logs=lines))
    first, second = rows.logs(case.made.id)
    assert (first["number"], first["level"], first["message"], first["execution"]) == (1, "info", "first", 1)
    assert (second["at"] - first["at"]).total_seconds() == 2


def test_a_repeated_end_is_recognized_as_the_own_one_and_written_once():
    ends = [ending(running(), to) for to in (State.SUCCEEDED, State.SCHEDULED, State.ENQUEUED, State.FAILED)]
    first = settle(*ends)
    again = settle(*reversed(ends))
    assert [settled.again for settled in first] == [False] * 4
    assert [settled.again for settled in again] == [True] * 4
    assert [settled.state for settled in reversed(again)] == [settled.state for settled in first]
    assert rows.total("succeeded") == 1
    for end in ends:
        assert len(rows.attempts(end.id)) == len(rows.history(end.id)) == 1


def test_a_repeated_end_is_recognized_after_the_job_has_gone_on():
    case = running()
    end = ending(case, State.ENQUEUED)
    settle(end)
    transitions.claim_next([(case.made.queue, 0)], types=["test.echo"], **claimant())
    assert settle(end) == [transitions.Settled(case.token, State.ENQUEUED, again=True)]
    assert rows.state(case.made.id) == State.PROCESSING


def test_an_end_that_could_not_be_stored_is_recognized_when_it_is_repeated():
    end = ending(running(), State.SUCCEEDED, result="{nope")
    assert [(s.state, s.again) for s in settle(end)] == [(State.FAILED, False)]
    assert [(s.state, s.again) for s in settle(end)] == [(State.FAILED, True)]
    assert len(rows.letters(end.id)) == 1


@pytest.mark.parametrize("situation", ["expired", "expired, cancel asked"])
def test_a_late_owner_marks_its_own_attempt_as_discarded_and_writes_nothing_else(situation):
    case = make(situation, Fence.RIGHT)
    end = ending(case, State.SUCCEEDED)
    lose("default")
    before, minutes = rows.job(case.made.id), rows.metrics()
    assert settle(end) == [transitions.Settled(case.token, None)]
    [attempt] = rows.attempts(case.made.id)
    assert attempt["outcome"] == "WorkerLost"
    assert attempt["discarded_at"] is not None
    assert (rows.job(case.made.id), rows.metrics()) == (before, minutes)
    settle(end)
    assert rows.attempts(case.made.id) == [attempt]


def test_another_worker_can_not_mark_the_attempt_as_discarded():
    case = make("expired", Fence.RIGHT)
    lose("default")
    assert settle(ending(case, State.SUCCEEDED), worker_id=uuid4())[0].state is None
    assert rows.attempts(case.made.id)[0]["discarded_at"] is None


def test_another_worker_is_not_told_that_the_end_was_its_own():
    case = running()
    settle(ending(case, State.SUCCEEDED))
    assert settle(ending(case, State.SUCCEEDED), worker_id=uuid4())[0].state is None


def test_an_end_of_a_job_that_is_gone_is_lost():
    case = running()
    settle(ending(case, State.SUCCEEDED))
    transitions.delete([case.made.id])
    assert settle(ending(case, State.SUCCEEDED)) == [transitions.Settled(case.token, None)]


def test_nothing_to_settle_is_no_statement(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert settle() == []
        assert transitions.release([], worker_id=CALLER) == []


def test_the_minute_adds_up_over_batches_bucket_by_bucket():
    durations = [0.0, 0.009, 0.01, 0.3, 0.3, 1800.0, 1e6]
    cases = [running(queue="q", enqueued_at=ago(3), claimed_at=ago(1)) for _ in durations]
    ends = [ending(c, State.SUCCEEDED, duration=d) for c, d in zip(cases, durations, strict=True)]
    settle(*ends[:3])
    settle(*ends[3:])
    [minute] = rows.metrics()
    assert minute["succeeded"] == len(durations)
    assert minute["duration_sum"] == pytest.approx(sum(durations))
    assert minute["wait_sum"] == pytest.approx(2 * len(durations))
    counts = [0] * (len(BUCKETS) + 1)
    counts[0], counts[1], counts[5], counts[-1] = 2, 1, 2, 2
    assert minute["durations"] == counts


def test_a_clock_that_went_back_makes_no_negative_waiting_time():
    case = running(enqueued_at=ago(1), claimed_at=ago(5))
    settle(ending(case, State.SUCCEEDED))
    assert rows.metrics()[0]["wait_sum"] == 0


def test_the_minutes_are_kept_apart_by_worker_queue_and_type():
    for queue, name in (("a", "test.one"), ("a", "test.two"), ("b", "test.one")):
        settle(ending(running(queue=queue, type=name), State.SUCCEEDED))
    assert [(m["queue"], m["type"], m["succeeded"]) for m in rows.metrics()] == [
        ("a", "test.one", 1),
        ("a", "test.two", 1),
        ("b", "test.one", 1),
    ]


def test_a_pending_dead_letter_is_not_doubled():
    case = running()
    rows.make_letter(case.made)
    settle(ending(case, State.FAILED))
    assert len(rows.letters(case.made.id)) == 1


def test_a_released_job_is_not_charged_and_waits_again_from_now():
    case = running(attempts_used=1, lost_count=1, progress=50)
    transitions.release([(case.made.id, case.token)], worker_id=CALLER)
    row = rows.job(case.made.id)
    assert (row["state"], row["attempts_used"], row["lost_count"]) == ("Enqueued", 1, 1)
    assert row["progress"] == 0
    assert row["enqueued_at"] == rows.select("SELECT now() AS now")[0]["now"]


def test_a_released_job_that_may_run_only_once_ends_failed():
    case = running(at_most_once=True)
    [done] = transitions.release([(case.made.id, case.token)], worker_id=CALLER)
    assert (done.state, rows.job(case.made.id)["failure_kind"]) == (State.FAILED, "interrupted")
    assert rows.edges(case.made.id) == [("Processing", "Failed", "never_repeated")]
    assert rows.attempts(case.made.id)[0]["outcome"] == "Interrupted"
    assert len(rows.letters(case.made.id)) == 1


def test_every_token_is_new_and_none_comes_back():
    case = running()
    seen = [case.made.token]
    execute("UPDATE turno.jobs SET max_attempts = 100 WHERE id = %s", case.made.id)
    for _ in range(4):
        transitions.release([(case.made.id, seen[-1])], worker_id=CALLER)
        [claim] = transitions.claim_next([(case.made.queue, 0)], types=["test.echo"], **claimant())
        seen.append(claim.dispatch_id)
    assert len(set(seen)) == 5
    assert [attempt["dispatch_id"] for attempt in rows.attempts(case.made.id)] == seen[:-1]
    assert [attempt["ordinal"] for attempt in rows.attempts(case.made.id)] == [1, 2, 3, 4]


def test_the_histogram_has_a_column_for_every_bucket_of_the_metrics():
    assert FINISH.count("FILTER (WHERE bucket =") == len(BUCKETS) + 1


@pytest.mark.parametrize(
    "spoiled",
    [{"exit_code": 2**70}, {"stage": "\ud800"}, {"stage": "a\0b"}, {"result": '"\ud800"'}, {"peak_memory": 2**63}],
    ids=["no integer", "half a character", "NUL", "half a character in the result", "too much memory"],
)
def test_what_cannot_be_stored_ends_its_own_job_and_no_other(spoiled):
    good, bad = running(), running()
    answers = settle(ending(good, State.SUCCEEDED), ending(bad, State.SUCCEEDED, **spoiled))
    assert [answer.state for answer in answers] == [State.SUCCEEDED, State.FAILED]
    assert rows.job(bad.made.id)["error_type"] == "ResultError"
