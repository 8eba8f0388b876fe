"""Claims against claims, cancels and a whole crowd: a job is started by one."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.races.two import Other, holding, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import Sql, make_job, make_jobs

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


def claim(made, using="default"):
    return transitions.claim([(made.id, made.token, 0)], **claimant(), using=using)


def search(slots=1, using="default"):
    return transitions.claim_next(
        [("default", n) for n in range(slots)], types=["test.echo"], **claimant(), using=using
    )


@pytest.mark.parametrize("roll_back", [False, True], ids=["commits", "rolls back"])
def test_the_second_claim_of_one_job_waits_and_gets_it_only_if_the_first_gives_up(roll_back):
    made = make_job()
    with holding(roll_back=roll_back):
        assert len(claim(made)) == 1
        second = Other(lambda: claim(made, "engine"))
        second.is_waiting()
    assert len(second.answer()) == roll_back
    assert rows.job(made.id)["executions"] == len(rows.history(made.id)) == 1


def test_a_search_steps_over_a_job_that_another_one_is_taking():
    first, second = make_job(priority=1), make_job()
    with holding():
        assert [claim.id for claim in search()] == [first.id]
        assert [claim.id for claim in Other(lambda: search(2, "engine")).answer()] == [second.id]


def test_a_search_steps_over_a_job_that_is_being_cancelled():
    made, other = make_job(priority=1), make_job()
    with holding():
        transitions.cancel([made.id])
        assert [claim.id for claim in Other(lambda: search(2, "engine")).answer()] == [other.id]
    assert rows.state(made.id) == State.CANCELLED


def test_a_cancel_that_waited_for_a_claim_asks_the_worker_that_won(ear):
    made = make_job()
    with holding():
        [taken] = search()
        cancel = Other(lambda: transitions.cancel([made.id], using="engine"))
        cancel.is_waiting()
    [verdict] = cancel.answer()
    assert (verdict.state, verdict.requested) == (State.PROCESSING, True)
    row = rows.job(made.id)
    assert row["cancel_requested_at"] is not None
    assert str(row["worker_id"]) in ear.heard()[-1][1]
    assert row["dispatch_id"] == taken.dispatch_id


def test_a_claim_that_waited_for_a_cancel_gets_nothing():
    made = make_job()
    with holding():
        transitions.cancel([made.id])
        late = Other(lambda: claim(made, "engine"))
        late.is_waiting()
    assert late.answer() == []
    assert rows.edges(made.id) == [("Enqueued", "Cancelled", "cancelled")]


def test_a_claim_that_waited_while_the_job_got_another_token_gets_nothing():
    made = make_job()
    with holding():
        transitions.cancel([made.id])
        transitions.requeue([made.id])
        late = Other(lambda: claim(made, "engine"))
        late.is_waiting()
    assert late.answer() == []
    assert rows.state(made.id) == State.ENQUEUED


def test_four_drains_of_two_thousand_jobs_start_each_once():
    make_jobs(2000, enqueued_at=Sql("now() - n * interval '1 ms'"))

    def drain():
        taken = []
        while found := search(50, "engine"):
            taken += [claim.id for claim in found]
        return taken

    taken = [id_ for ids in together([drain] * 4) for id_ in ids]
    assert len(taken) == len(set(taken)) == 2000
    [counts] = rows.select(
        "SELECT count(*) AS steps, count(DISTINCT job_id) AS jobs, max(execution) AS most FROM turno.job_state_changes"
    )
    assert counts == {"steps": 2000, "jobs": 2000, "most": 1}
