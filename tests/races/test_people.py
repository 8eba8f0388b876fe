"""What people do, against each other and against the clock."""

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import State
from tests.races.two import Other, holding, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, make_job

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


@pytest.mark.parametrize("roll_back", [False, True], ids=["commits", "rolls back"])
def test_of_two_requeues_with_one_unique_key_the_second_waits_and_is_refused_if_the_first_commits(roll_back):
    first, second = (make_job(State.FAILED, unique_key="k") for _ in range(2))
    with holding(roll_back=roll_back):
        transitions.requeue([first.id])
        late = Other(lambda: transitions.requeue([second.id], using="engine"))
        late.is_waiting()
    if roll_back:
        assert late.answer() == [Verdict(second.id, applied=True, state=State.ENQUEUED)]
    else:
        assert late.answer() == [Verdict(second.id, applied=False, state=State.FAILED, problem="unique_key")]
    assert len(rows.history(first.id)) + len(rows.history(second.id)) == 1


def test_a_rival_of_one_unique_key_stops_no_other_job_of_the_same_call():
    keyed, *free = [make_job(State.FAILED, unique_key=key) for key in ("k", None, "other")]
    with holding():
        make_job(unique_key="k")
        late = Other(lambda: transitions.requeue([keyed.id, *(made.id for made in free)], using="engine"))
        late.is_waiting()
    assert [verdict.problem for verdict in late.answer()] == ["unique_key", None, None]
    assert [rows.state(made.id) for made in free] == [State.ENQUEUED] * 2


def test_the_second_requeue_of_one_job_finds_it_enqueued():
    made = make_job(State.FAILED)
    with holding():
        transitions.requeue([made.id])
        late = Other(lambda: transitions.requeue([made.id], using="engine"))
        late.is_waiting()
    assert late.answer() == [Verdict(made.id, applied=False, state=State.ENQUEUED, problem="state")]
    assert len(rows.history(made.id)) == 1


def test_promotion_steps_over_a_job_that_is_being_cancelled():
    made = make_job(State.SCHEDULED, run_at=ago(1))
    with holding():
        transitions.cancel([made.id])
        assert Other(lambda: transitions.promote(limit=9, using="engine")).answer() == 0
    assert transitions.promote(limit=9) == 0
    assert rows.state(made.id) == State.CANCELLED


def test_a_cancel_that_waited_for_a_promotion_cancels_the_enqueued_job():
    made = make_job(State.SCHEDULED, run_at=ago(1))
    with holding():
        assert transitions.promote(limit=9) == 1
        late = Other(lambda: transitions.cancel([made.id], using="engine"))
        late.is_waiting()
    assert late.answer() == [Verdict(made.id, applied=True, state=State.CANCELLED)]
    steps = [("Scheduled", "Enqueued", "due"), ("Enqueued", "Cancelled", "cancelled")]
    assert rows.edges(made.id) == steps


def test_a_run_now_that_waited_for_a_promotion_enqueues_nothing_twice():
    made = make_job(State.SCHEDULED, run_at=ago(1))
    with holding():
        transitions.promote(limit=9)
        token = rows.job(made.id)["dispatch_id"]
        late = Other(lambda: transitions.run_now([made.id], using="engine"))
        late.is_waiting()
    assert late.answer() == [Verdict(made.id, applied=False, state=State.ENQUEUED, problem="state")]
    assert rows.job(made.id)["dispatch_id"] == token


def test_a_delete_that_waited_for_a_requeue_leaves_the_job():
    made = make_job(State.FAILED)
    with holding():
        transitions.requeue([made.id])
        late = Other(lambda: transitions.delete([made.id], using="engine"))
        late.is_waiting()
    assert late.answer() == [Verdict(made.id, applied=False, state=State.ENQUEUED, problem="state")]


def test_a_requeue_that_waited_for_a_delete_finds_no_job():
    made, other = make_job(State.FAILED), make_job(State.FAILED)
    with holding():
        transitions.delete([made.id])
        late = Other(lambda: transitions.requeue([made.id, other.id], using="engine"))
        late.is_waiting()
    assert [verdict.problem for verdict in late.answer()] == ["not_found", None]
    assert rows.select("SELECT count(*) AS n FROM turno.job_state_changes")[0]["n"] == 1


def test_retention_steps_over_a_job_that_is_being_requeued():
    made, other = (make_job(State.CANCELLED, finished_at=ago(500)) for _ in range(2))
    with holding():
        transitions.requeue([made.id])
        purge = Other(lambda: transitions.purge(State.CANCELLED, age=60, letters=60, limit=9, using="engine"))
        assert purge.answer().jobs == 1
    assert (rows.state(made.id), rows.job(other.id)) == (State.ENQUEUED, None)


def test_a_requeue_waits_for_an_enqueue_that_has_not_committed_and_is_refused_by_it():
    made = make_job(State.FAILED, unique_key="k")
    with rival() as caller:
        insert = (
            "INSERT INTO turno.jobs (id, type, queue, payload, state, unique_key, dispatch_id, enqueued_at) VALUES "
        )
        values = "(gen_random_uuid(), 't', 'default', '{}', 'Enqueued', 'k', gen_random_uuid(), now())"
        caller.execute(insert + values)
        late = Other(lambda: transitions.requeue([made.id], using="engine"))
        late.is_waiting()
        caller.commit()
    assert late.answer()[0].problem == "unique_key"
