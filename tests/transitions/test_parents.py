"""Continuations: what becomes of a child when its parents end, one way or the other."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import transitions
from jobs.states import FINAL, State
from tests.transitions import COMMITTED, rows
from tests.transitions.children import WORKER, child, end, run, running
from tests.transitions.edges import LOSING
from tests.transitions.rows import execute, make_job, make_worker, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
BAD = [State.FAILED, State.CANCELLED]
LATER = {"run_at": datetime(2999, 1, 2, tzinfo=UTC)}
PARENTS = "SELECT parent_id, policy FROM turno.job_dependencies WHERE child_id = %s ORDER BY parent_id"


def checked(*ids: UUID, using: str = "default") -> int:
    return transitions.check_parents(ids, using=using)


def waits(id_: UUID) -> tuple[str, str | None, str | None]:
    row = rows.job(id_)
    return row["state"], row["waiting_for"], row["gate"]


def test_a_child_is_parked_with_what_it_waits_for_and_is_told_of(ear):
    first, second = running(), running()
    id_ = child(first, second, policy="run")
    row = rows.job(id_)
    assert (row["state"], row["waiting_for"], row["gate"]) == ("Scheduled", "parents", None)
    assert (row["run_at"], row["dispatch_id"], row["enqueued_at"]) == (None, None, None)
    assert rows.edges(id_) == [(None, "Scheduled", "created")]
    assert select(PARENTS, id_) == [{"parent_id": one, "policy": "run"} for one in sorted([first, second])]
    assert ear.heard() == [("turno_gates", f"parents:{id_}")]


def test_it_goes_on_when_the_last_parent_has_succeeded(using):
    first, second = running(), running()
    id_ = child(first, second)
    end(first, using=using)
    assert waits(id_) == ("Scheduled", "parents", str(second))
    end(second, using=using)
    assert waits(id_) == ("Enqueued", None, None)
    assert rows.edges(id_)[1:] == [("Scheduled", "Enqueued", "gate_opened")]


def test_the_workers_of_its_queue_are_told_when_it_goes_on(ear):
    parent = running()
    id_ = child(parent, queue="late")
    ear.heard()
    end(parent)
    assert ear.heard() == [("turno_work", "late")]
    assert rows.job(id_)["dispatch_id"] is not None


@pytest.mark.parametrize("to", BAD)
def test_a_parent_that_does_not_succeed_cancels_it_at_once(using, to):
    """Whatever else it waits for: it will not run."""
    parent, other = running(), running()
    id_ = child(parent, other)
    end(parent, to=to, using=using)
    assert waits(id_) == ("Cancelled", None, None)
    [_, step] = rows.history(id_)
    assert (step["reason"], step["detail"], step["actor"]) == ("parent_failed", str(parent), None)
    assert rows.job(id_)["finished_at"] is not None


@pytest.mark.parametrize("to", sorted(FINAL))
def test_with_the_policy_run_any_end_lets_it_go_on(using, to):
    parent = running()
    id_ = child(parent, policy="run")
    end(parent, to=to, using=using)
    assert rows.state(id_) == "Enqueued"


@pytest.mark.parametrize("to", sorted(FINAL))
@pytest.mark.parametrize("policy", ["cancel", "run"])
def test_parents_that_had_ended_before_it_count_like_others(using, policy, to):
    parent = make_job(to).id
    id_ = child(parent, policy=policy)
    assert rows.state(id_) == "Scheduled"
    assert checked(id_, using=using) == 1
    assert rows.state(id_) == ("Enqueued" if policy == "run" or to is State.SUCCEEDED else "Cancelled")
    assert checked(id_, using=using) == 0


@pytest.mark.parametrize("state", ["Enqueued", "Processing", "Scheduled"])
def test_a_look_at_a_child_whose_parent_has_not_ended_names_that_as_its_gate(using, state):
    done, parent = make_job(State.SUCCEEDED).id, make_job(state).id
    id_ = child(done, parent)
    assert checked(id_, using=using) == 0
    assert waits(id_) == ("Scheduled", "parents", str(parent))


def test_what_falls_takes_its_own_children_with_it_and_lets_those_go_on_that_said_run(using):
    parent = running()
    son = child(parent)
    grandson, brave = child(son), child(son, policy="run")
    last = child(grandson)
    end(parent, to=State.FAILED, using=using)
    assert [rows.state(one) for one in (son, grandson, brave, last)] == [
        "Cancelled", "Cancelled", "Enqueued", "Cancelled",
    ]  # fmt: skip
    assert rows.history(last)[-1]["detail"] == str(grandson)


def test_a_diamond_runs_its_end_once_both_sides_are_done(using):
    top = running()
    left, right = child(top), child(top)
    bottom = child(left, right)
    end(top, using=using)
    run(left, using=using)
    assert waits(bottom) == ("Scheduled", "parents", str(right))
    run(right, using=using)
    assert rows.state(bottom) == "Enqueued"


def test_a_diamond_falls_whole_when_one_side_fails(using):
    top = running()
    left, right = child(top), child(top)
    bottom = child(left, right)
    end(top, using=using)
    run(left, to=State.FAILED, using=using)
    assert (rows.state(bottom), rows.state(right)) == ("Cancelled", "Enqueued")


def cancel(id_):
    transitions.cancel([id_], actor="ana")


def fail_unknown(id_):
    make_worker(queues={"default": 1}, types=["other"])
    execute(
        "UPDATE turno.jobs SET waiting_for = 'unknown_type', gate = type, state = 'Scheduled', run_at = NULL, "
        "dispatch_id = NULL, enqueued_at = now() - interval '1 day' WHERE id = %s", id_,
    )  # fmt: skip
    execute(
        "INSERT INTO turno.unserved_types (queue, type, since, seen_at) "
        "VALUES ('default', 'test.echo', now() - interval '1 day', now())"
    )
    times = {"silent_after": 60.0, "unwatched_after": 60.0}
    assert transitions.fail_unknown(limit=9, grace=60.0, **times) == [id_]


@pytest.mark.parametrize("ends", [cancel, fail_unknown])
@pytest.mark.parametrize("policy", ["cancel", "run"])
def test_a_parent_that_ends_without_running_counts_as_well(ends, policy):
    parent = make_job(State.ENQUEUED).id
    id_ = child(parent, policy=policy)
    ends(parent)
    execute("DELETE FROM turno.workers")
    assert rows.state(id_) == ("Cancelled" if policy == "cancel" else "Enqueued")


def lost(id_):
    execute("UPDATE turno.jobs SET lease_expires_at = now() - interval '1 day', lost_count = 2 WHERE id = %s", id_)
    transitions.expire(grace=1.0, **{**LOSING, "rng": None})


def taken_back(id_):
    execute("UPDATE turno.jobs SET lost_count = 2 WHERE id = %s", id_)
    transitions.take_back(WORKER, **{**LOSING, "rng": None})


def released_at_most_once(id_):
    execute("UPDATE turno.jobs SET at_most_once = true WHERE id = %s", id_)
    transitions.release([(id_, rows.job(id_)["dispatch_id"])], worker_id=WORKER)


@pytest.mark.parametrize("ends", [lost, taken_back, released_at_most_once])
def test_a_parent_whose_end_others_write_counts_as_well(ends):
    parent = running()
    id_ = child(parent)
    ends(parent)
    assert (rows.state(parent), rows.state(id_)) == ("Failed", "Cancelled")


def test_a_parent_that_is_tried_again_has_not_ended(using):
    parent = running()
    id_ = child(parent)
    checked(id_)
    transitions.release([(parent, rows.job(parent)["dispatch_id"])], worker_id=WORKER, using=using)
    assert (rows.state(parent), rows.state(id_)) == ("Enqueued", "Scheduled")


def test_its_instant_comes_after_its_parents(using):
    parent = running()
    id_ = child(parent, **LATER)
    row = rows.job(id_)
    assert (row["waiting_for"], row["run_at"], row["not_before"]) == ("parents", None, LATER["run_at"])
    end(parent, using=using)
    row = rows.job(id_)
    assert (row["state"], row["waiting_for"], row["run_at"], row["gate"]) == ("Scheduled", "due", LATER["run_at"], None)
    assert transitions.run_now([id_], using=using)[0].applied


def test_who_promotes_is_told_of_an_instant_that_is_near(ear):
    parent = running()
    id_ = child(parent, run_at=datetime.now(UTC) + timedelta(hours=1))
    execute("UPDATE turno.jobs SET not_before = now() + interval '1 second' WHERE id = %s", id_)
    ear.heard()
    end(parent)
    assert ear.heard() == [("turno_due", "")]


def test_an_instant_that_has_passed_meanwhile_is_none(using):
    parent = running()
    id_ = child(parent, **LATER)
    execute("UPDATE turno.jobs SET not_before = now() - interval '1 second' WHERE id = %s", id_)
    end(parent, using=using)
    assert rows.state(id_) == "Enqueued"


def test_run_now_is_refused_and_cancel_is_not(using):
    parent = running()
    id_ = child(parent)
    [verdict] = transitions.run_now([id_], using=using)
    assert (verdict.applied, verdict.problem) == (False, "gate")
    assert transitions.cancel([id_], using=using)[0].applied
    end(parent, using=using)
    assert rows.state(id_) == "Cancelled"


def test_a_child_that_somebody_cancelled_takes_its_own_with_it(using):
    parent = running()
    son = child(parent)
    grandson = child(son)
    transitions.cancel([son], using=using)
    assert (rows.state(son), rows.state(grandson)) == ("Cancelled", "Cancelled")


def test_a_job_without_children_costs_one_look():
    parent = running()
    with CaptureQueriesContext(connection) as sent:
        end(parent)
    assert sum("job_dependencies" in query["sql"] for query in sent) == 1
