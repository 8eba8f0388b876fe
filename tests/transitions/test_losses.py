"""The rule of a loss, whoever finds it: recovery, take-back, a worker that lost a child process."""

from dataclasses import replace
from random import Random
from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Claim
from jobs.retry import RetryPolicy
from jobs.states import Outcome, Reason, State, Waiting
from jobs.transitions import Settled, lost_ending
from tests.transitions import rows
from tests.transitions.edges import CALLER, Fence, ending, lose, make, take_back
from tests.transitions.rows import ago, make_job

db = pytest.mark.django_db
LOSSES = [
    ({}, "Enqueued", "at once"),
    ({"lost_count": 1, "attempts_used": 1}, "Scheduled", "worker_lost"),
    ({"lost_count": 2, "attempts_used": 2}, "Failed", "lost_too_often"),
    ({"attempts_used": 4}, "Failed", "attempts_used_up"),
    ({"max_attempts": 1}, "Failed", "attempts_used_up"),
    ({"attempts_used": 3}, "Enqueued", "at once"),
    ({"at_most_once": True}, "Failed", "never_repeated"),
]
NAMES = ["first", "second", "third", "last attempt", "only attempt", "last but one", "at most once"]
every_loss = pytest.mark.parametrize(("columns", "to", "reason"), LOSSES, ids=NAMES)


def claim(**columns) -> Claim:
    own = {"attempts_used": 0, "max_attempts": 5, "lost_count": 0, "timeout": None, "at_most_once": False}
    fixed = {"type": "t", "queue": "q", "payload": {}, "slot": 1, "execution": 1, "claimed_at": None}
    return Claim(uuid4(), uuid4(), **(fixed | own | columns))


def end(lost, **options):
    own = {"text": "gone", "policy": RetryPolicy(max_attempts=50), "lost_limit": 3, "rng": Random(1)}
    return lost_ending(lost, **(own | options))


@every_loss
def test_the_rule_charges_the_attempt_counts_the_loss_and_obeys_the_first_limit(columns, to, reason):
    lost = claim(**columns)
    ended = end(lost, at_once=Reason.TAKEN_BACK)
    assert (ended.id, ended.dispatch_id, ended.to) == (lost.id, lost.dispatch_id, to)
    assert ended.reason == ("taken_back" if reason == "at once" else reason)
    assert (ended.outcome, ended.counted, ended.lost) == (Outcome.WORKER_LOST, True, True)
    assert (ended.failure_kind is not None) is (to == "Failed")
    assert (ended.delay is not None) is (ended.waiting_for is Waiting.RETRY) is (to == "Scheduled")
    assert (ended.error.type, ended.error.message, ended.duration) == ("WorkerLost", "gone", None)


def test_what_killed_a_child_process_is_kept_and_is_part_of_the_cause():
    ends = [
        end(claim(), signal=9, peak_memory=1 << 40),
        end(claim(), signal=11),
        end(claim(), exit_code=3),
        end(claim()),
    ]
    assert [(e.exit_code, e.signal, e.peak_memory) for e in ends] == [
        (None, 9, 1 << 40),
        (None, 11, None),
        (3, None, None),
        (None, None, None),
    ]
    assert len({e.error.fingerprint for e in ends}) == len(ends)
    assert end(claim(), signal=9).error.fingerprint == ends[0].error.fingerprint


@db
@every_loss
def test_a_take_back_ends_what_the_dead_worker_held_whatever_its_leases_say(columns, to, reason):
    mades = [make_job(State.PROCESSING, worker=CALLER, lease_expires_at=at, **columns) for at in (ago(60), ago(-60))]
    assert {(done.id, done.state) for done in take_back("default")} == {(made.id, to) for made in mades}
    for made in mades:
        row = rows.job(made.id)
        step = ("Processing", to, "taken_back" if reason == "at once" else reason)
        assert rows.edges(made.id) == [step]
        assert row["attempts_used"] == columns.get("attempts_used", 0) + 1
        assert row["lost_count"] == columns.get("lost_count", 0) + 1
        [attempt] = rows.attempts(made.id)
        assert (attempt["outcome"], attempt["counted"], attempt["duration"]) == ("WorkerLost", True, None)
        assert (row["failure_kind"], len(rows.letters(made.id))) == (
            ("worker_lost", 1) if to == "Failed" else (None, 0)
        )
        assert rows.LABEL["name"] in row["error_message"]


@db
def test_a_take_back_touches_no_other_worker_and_goes_by_batches():
    mine = sorted(make_job(State.PROCESSING, worker=CALLER).id for _ in range(5))
    other = make_job(State.PROCESSING)
    assert [[done.id for done in take_back("default", limit=2)] for _ in range(4)] == [
        mine[:2],
        mine[2:4],
        mine[4:],
        [],
    ]
    assert rows.state(other.id) == State.PROCESSING


@db
def test_a_late_owner_learns_of_the_take_back_and_only_marks_its_attempt():
    case = make("processing", Fence.RIGHT)
    take_back("default")
    late = ending(case, State.SUCCEEDED)
    assert transitions.settle([late], worker_id=CALLER) == [Settled(case.token, None)]
    assert rows.attempts(case.made.id)[0]["discarded_at"] is not None
    assert rows.state(case.made.id) == State.ENQUEUED


class TestALostChildProcess:
    """The worker lives and settles the loss itself."""

    pytestmark = db

    def settle(self, *ends):
        return transitions.settle(ends, worker_id=CALLER)

    def lost(self, **columns):
        case = make("processing", Fence.RIGHT, **columns)
        [claimed] = rows.select("SELECT * FROM turno.jobs WHERE id = %s", case.made.id)
        kept = ("id", "dispatch_id", "type", "queue", "slot", "attempts_used", "max_attempts", "lost_count", "timeout")
        values = {name: claimed[name] for name in (*kept, "at_most_once", "claimed_at")}
        return case, end(Claim(**values, payload={}, execution=1), signal=11, peak_memory=5 << 30)

    @pytest.mark.parametrize("duration", [2.5, None, float("nan")])
    def test_whose_answer_was_lost_is_recognized_as_the_own_end_and_is_no_discarded_one(self, duration):
        case, ended = self.lost()
        ended = replace(ended, duration=duration)
        assert self.settle(ended) == [Settled(case.token, State.ENQUEUED)]
        assert self.settle(ended) == [Settled(case.token, State.ENQUEUED, again=True)]
        [attempt] = rows.attempts(case.made.id)
        assert (attempt["outcome"], attempt["signal"], attempt["peak_memory"]) == ("WorkerLost", 11, 5 << 30)
        assert (attempt["duration"], attempt["discarded_at"]) == (2.5 if duration == 2.5 else 0.0, None)
        assert rows.total("lost") == 1

    def test_is_told_from_a_loss_that_recovery_wrote(self):
        case, ended = self.lost(lease_expires_at=ago(60))
        lose("default")
        assert self.settle(ended) == [Settled(case.token, None)]
        [attempt] = rows.attempts(case.made.id)
        assert (attempt["signal"], attempt["discarded_at"] is not None) == (None, True)
        assert rows.job(case.made.id)["lost_count"] == 1

    def test_becomes_cancelled_when_that_was_asked_and_the_attempt_says_what_happened(self):
        case, ended = self.lost(cancel_requested_at=ago(1), cancel_requested_by="ana", lost_count=2)
        assert ended.to is State.FAILED
        assert self.settle(ended) == [Settled(case.token, State.CANCELLED)]
        assert self.settle(ended) == [Settled(case.token, State.CANCELLED, again=True)]
        row, [attempt] = rows.job(case.made.id), rows.attempts(case.made.id)
        assert (row["lost_count"], row["failure_kind"], rows.letters(case.made.id)) == (3, None, [])
        assert (attempt["outcome"], attempt["signal"]) == ("WorkerLost", 11)
        assert (rows.total("cancelled"), rows.total("lost"), rows.total("failed")) == (1, 1, 0)
        assert rows.history(case.made.id)[0]["actor"] == "ana"

    def test_that_the_database_refuses_ends_failed_and_counts_as_no_loss(self):
        case, ended = self.lost()
        [settled] = self.settle(replace(ended, peak_memory=1 << 70))
        assert settled.state is State.FAILED
        row, [attempt] = rows.job(case.made.id), rows.attempts(case.made.id)
        assert (row["lost_count"], attempt["outcome"], attempt["peak_memory"]) == (0, "Failed", None)
