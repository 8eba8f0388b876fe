"""Each situation × each verb × each fence, on both connections: the legal change and nothing else, or nothing at all.

A verb is called once for all its cases, shuffled; each job has a queue of its own, so that metrics and notifications
tell the cases apart.
"""

from collections import defaultdict
from random import Random

import orjson
import pytest

from jobs.metrics import BUCKETS
from jobs.states import EDGES, FINAL, State
from jobs.transitions import CONTROL, WORK
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import BUCKET, CALLER, SITUATIONS, VERBS, Case, Fence, make, missing
from tests.transitions.legal import LEGAL, Change

pytestmark = COMMITTED
OWNERS = ("worker_id", "worker_label", "lease_expires_at", "claim_id", "claimed_at", "started_at", "slot")


class World:
    """What the tables and the channels say of each job."""

    def __init__(self, heard=()):
        self.jobs = {row["id"]: row for row in rows.select("SELECT * FROM turno.jobs")}
        self.history = self._of_job("job_state_changes")
        self.attempts = self._of_job("job_attempts")
        self.letters = self._of_job("dead_letters")
        self.minutes = defaultdict(list)
        for row in rows.metrics():
            self.minutes[row["queue"]].append(row)
        self.woken = [payload for channel, payload in heard if channel == WORK]
        self.asked = [orjson.loads(payload) for channel, payload in heard if channel == CONTROL]

    @staticmethod
    def _of_job(table):
        found = defaultdict(list)
        for row in rows.select(f"SELECT * FROM turno.{table} ORDER BY id"):
            found[row["job_id"]].append(row)
        return found


def played(name, verb, using, ear):
    """A verb called with every case in an order of its own; the cases, the world before and after, and its answer."""
    cases = [make(situation, fence) for situation in SITUATIONS for fence in verb.fences]
    cases.append(missing())
    Random(name).shuffle(cases)
    before = World()
    answer = verb.call(cases, using)
    return cases, before, World(ear.heard()), answer


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_makes_its_legal_changes_and_no_other(verb, using, ear, subtests):
    cases, before, after, answer = played(verb, VERBS[verb], using, ear)
    for case in cases:
        with subtests.test(str(case)):
            change = LEGAL.get((verb, case.situation)) if case.fence is Fence.RIGHT else None
            if change is None:
                assert_untouched(case, before, after)
                again = verb == "cancel" and case.situation.endswith("cancel asked")
                assert answer.get(case.made.id) == (State.PROCESSING if again else None)
                assert_told(case, after, woken=False, asked=again)
            else:
                assert_changed(case, before, after, change, answer)
    assert len(after.woken) == len(set(after.woken))


def assert_told(case: Case, after: World, *, woken: bool, asked: bool):
    """The queue was woken, the worker was asked to cancel: exactly when it had to be."""
    assert (case.made.queue in after.woken) is woken
    message = {"cancel": str(case.made.id), "worker": str(case.made.worker)}
    assert (message in after.asked) is asked


def assert_untouched(case: Case, before: World, after: World):
    id_ = case.made.id
    assert after.jobs.get(id_) == before.jobs.get(id_)
    assert after.letters[id_] == before.letters[id_]
    assert (after.history[id_], after.attempts[id_], after.minutes[case.made.queue]) == ([], [], [])


def assert_changed(case: Case, before: World, after: World, change: Change, answer):
    id_ = case.made.id
    was, now = before.jobs[id_], after.jobs.get(id_)
    if change.gone:
        assert now is None
        assert (after.history[id_], after.letters[id_]) == ([], [])
        assert_told(case, after, woken=False, asked=False)
        return
    assert answer[id_] == now["state"] == (change.to or was["state"])
    if change.to is None:
        assert now != was
        assert (after.history[id_], after.attempts[id_], after.minutes[case.made.queue]) == ([], [], [])
        assert_told(case, after, woken=False, asked=change.asks)
        return
    assert_told(case, after, woken=change.to is State.ENQUEUED, asked=False)
    [step] = after.history[id_]
    assert (step["from_state"], step["to_state"], step["reason"]) == (was["state"], change.to, change.reason)
    assert_row(was, now, step, change)
    assert sum(letter["resolved_at"] is None for letter in after.letters[id_]) == change.letter
    if change.outcome is None:
        assert (after.attempts[id_], after.minutes[case.made.queue]) == ([], [])
    else:
        [attempt], [minute] = after.attempts[id_], after.minutes[case.made.queue]
        assert_attempt(was, attempt, step, change)
        assert_minute(was, minute, attempt, change)


def assert_row(was, now, step, change: Change):
    assert now["executions"] == was["executions"] + (change.to is State.PROCESSING)
    assert now["attempts_used"] == was["attempts_used"] + change.counted
    assert now["lost_count"] == was["lost_count"] + change.lost
    assert now["announced_at"] is None
    assert (now["finished_at"] is not None) is (change.to in FINAL)
    for column in OWNERS:
        assert (now[column] is not None) is (change.to is State.PROCESSING), column
    if change.to is State.ENQUEUED:
        assert now["dispatch_id"] not in (None, was["dispatch_id"])
        assert now["enqueued_at"] > was["enqueued_at"]
        assert (now["run_at"], now["waiting_for"], now["gate"]) == (None, None, None)
    elif change.to is State.PROCESSING:
        assert (now["dispatch_id"], now["worker_id"]) == (was["dispatch_id"], CALLER)
        assert (step["execution"], step["worker_id"]) == (now["executions"], CALLER)
    else:
        assert now["dispatch_id"] is None


def assert_attempt(was, attempt, step, change: Change):
    assert (attempt["outcome"], attempt["counted"]) == (change.outcome, bool(change.counted))
    assert (attempt["ordinal"], attempt["attempt"]) == (was["executions"], was["attempts_used"] + 1)
    assert (attempt["dispatch_id"], attempt["worker_id"]) == (was["dispatch_id"], was["worker_id"])
    names = {f"worker_{key}": value for key, value in was["worker_label"].items()}
    assert {key: attempt[key] for key in names} == names
    assert (attempt["slot"], attempt["started_at"]) == (was["slot"], was["claimed_at"])
    assert attempt["duration"] == change.duration
    assert (attempt["exit_code"], attempt["signal"], attempt["peak_memory"]) == change.died
    assert attempt["discarded_at"] is None
    assert (step["worker_id"], step["execution"]) == (was["worker_id"], was["executions"])
    asked = was["cancel_requested_at"] is not None and change.to is State.CANCELLED
    assert (step["actor"], step["detail"] == "enough") == ("ana" if asked else None, asked)


def assert_minute(was, minute, attempt, change: Change):
    assert (minute["worker_id"], minute["type"]) == (was["worker_id"], was["type"])
    assert minute["minute"] == attempt["ended_at"].replace(second=0, microsecond=0)
    again = change.to in (State.ENQUEUED, State.SCHEDULED) and bool(change.counted)
    ended = [State.SUCCEEDED, State.FAILED, State.CANCELLED]
    assert [minute[str(to).lower()] for to in ended] == [change.to is to for to in ended]
    assert (minute["retried"], minute["lost"]) == (again, change.lost)
    assert minute["wait_sum"] == pytest.approx((was["claimed_at"] - was["enqueued_at"]).total_seconds())
    assert minute["duration_sum"] == (change.duration or 0)
    counts = [0] * (len(BUCKETS) + 1)
    if change.duration is not None:
        counts[BUCKET if change.duration else 0] = 1
    assert minute["durations"] == counts


def test_the_matrix_goes_through_every_edge_that_the_verbs_make():
    taken = {(SITUATIONS[was][0], change.to) for (_, was), change in LEGAL.items() if change.to is not None}
    births = {(None, State.SCHEDULED), (None, State.ENQUEUED)}
    gates = {  # these come with flow control
        (State.FAILED, State.SCHEDULED),
        (State.CANCELLED, State.SCHEDULED),
    }
    assert taken == set(EDGES) - births - gates
