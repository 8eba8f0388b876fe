"""Recovery: whose lease ended long enough ago, oldest first, and what the retry rule makes of the loss."""

import pytest

from jobs.retry import RetryPolicy
from jobs.states import State
from tests.transitions import rows
from tests.transitions.edges import lose
from tests.transitions.rows import ago, make_job

pytestmark = pytest.mark.django_db


def lost(**columns):
    return make_job(State.PROCESSING, **({"lease_expires_at": ago(60)} | columns))


@pytest.mark.parametrize(
    ("columns", "to", "reason"),
    [
        ({}, "Enqueued", "worker_lost"),
        ({"lost_count": 1, "attempts_used": 1}, "Scheduled", "worker_lost"),
        ({"lost_count": 2, "attempts_used": 2}, "Failed", "lost_too_often"),
        ({"attempts_used": 4}, "Failed", "attempts_used_up"),
        ({"max_attempts": 1}, "Failed", "attempts_used_up"),
        ({"attempts_used": 3}, "Enqueued", "worker_lost"),
        ({"at_most_once": True}, "Failed", "never_repeated"),
    ],
    ids=["first loss", "second loss", "third loss", "last attempt", "only attempt", "last but one", "at most once"],
)
def test_a_loss_uses_an_attempt_and_counts_as_a_loss(columns, to, reason):
    made = lost(**columns)
    [done] = lose("default")
    row = rows.job(made.id)
    assert (done.id, done.dispatch_id, done.state) == (made.id, made.token, to)
    assert (row["state"], rows.edges(made.id)) == (to, [("Processing", to, reason)])
    assert row["attempts_used"] == columns.get("attempts_used", 0) + 1
    assert row["lost_count"] == columns.get("lost_count", 0) + 1
    [attempt] = rows.attempts(made.id)
    assert (attempt["outcome"], attempt["counted"], attempt["duration"]) == ("WorkerLost", True, None)
    assert (attempt["worker_id"], attempt["worker_name"]) == (made.worker, rows.LABEL["name"])
    assert (row["failure_kind"], len(rows.letters(made.id))) == (("worker_lost", 1) if to == "Failed" else (None, 0))
    assert rows.LABEL["name"] in row["error_message"]


def test_the_second_loss_waits_by_the_curve_of_its_type():
    made = lost(lost_count=1, type="test.slow")
    asked = []

    def policy_of(name):
        asked.append(name)
        return RetryPolicy(base=40, jitter=0)

    lose("default", policy_of=policy_of)
    row = rows.job(made.id)
    assert asked == ["test.slow"]
    assert (row["run_at"] - row["enqueued_at"]).total_seconds() == 42  # enqueued 2 s ago
    assert row["waiting_for"] == "retry"


def test_the_attempts_that_count_are_those_of_the_job_and_not_of_the_policy():
    made = lost(max_attempts=1)
    lose("default", policy_of=lambda _: RetryPolicy(max_attempts=50))
    assert rows.state(made.id) == State.FAILED


def test_a_lease_within_the_grace_is_left_alone():
    young, old = lost(lease_expires_at=ago(14.9)), lost(lease_expires_at=ago(15.1))
    assert [done.id for done in lose("default", grace=15)] == [old.id]
    assert rows.state(young.id) == State.PROCESSING


def test_the_oldest_leases_are_ended_first_and_a_full_answer_asks_for_another_call():
    mades = [lost(lease_expires_at=ago(100 + n)) for n in range(5)]
    assert {done.id for done in lose("default", limit=2)} == {mades[4].id, mades[3].id}
    assert {done.id for done in lose("default", limit=2)} == {mades[2].id, mades[1].id}
    assert [done.id for done in lose("default", limit=2)] == [mades[0].id]
    assert lose("default", limit=2) == []


def test_losses_are_charged_to_the_workers_that_were_lost():
    mades = [lost(queue="q"), lost(queue="q")]
    lose("default")
    assert {minute["worker_id"]: minute["lost"] for minute in rows.metrics()} == {made.worker: 1 for made in mades}
