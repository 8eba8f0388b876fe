"""Take-back against a late owner, recovery, a neighbour that does the same, a cancel: each execution ends once."""

import pytest

from jobs import transitions
from jobs.states import State
from jobs.transitions import Settled
from tests.races.two import Other, holding, lock, rival, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, ending, lose, make, take_back

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"


def settle(case, to=State.SUCCEEDED, using="default"):
    return transitions.settle([ending(case, to)], worker_id=CALLER, using=using)


def assert_ended_once(case, to, reason, outcome):
    assert rows.edges(case.made.id) == [("Processing", to, reason)]
    [attempt] = rows.attempts(case.made.id)
    assert attempt["outcome"] == outcome
    lost = int(outcome == "WorkerLost")
    assert (rows.job(case.made.id)["lost_count"], rows.total("lost")) == (lost, lost)


def test_an_owner_that_waited_for_the_take_back_writes_nothing_and_marks_its_attempt():
    case = make("processing", Fence.RIGHT)
    with holding():
        take_back("default")
        late = Other(lambda: settle(case, using=ENGINE))
        late.is_waiting()
    assert late.answer() == [Settled(case.token, None)]
    assert_ended_once(case, "Enqueued", "taken_back", "WorkerLost")
    assert rows.attempts(case.made.id)[0]["discarded_at"] is not None
    assert rows.job(case.made.id)["result"] is None


def test_the_last_end_of_a_dead_owner_that_is_at_its_commit_is_stepped_over_and_counts():
    case = make("processing", Fence.RIGHT)
    with holding():
        settle(case)
        assert Other(lambda: take_back(ENGINE)).answer() == []
    assert take_back("default") == []
    assert_ended_once(case, "Succeeded", "succeeded", "Succeeded")


def test_the_last_end_of_a_dead_owner_that_is_rolled_back_leaves_the_job_to_the_next_look():
    case = make("processing", Fence.RIGHT)
    with holding(roll_back=True):
        settle(case)
        assert Other(lambda: take_back(ENGINE)).answer() == []
    assert [done.id for done in take_back("default")] == [case.made.id]
    assert_ended_once(case, "Enqueued", "taken_back", "WorkerLost")


@pytest.mark.parametrize(
    ("first", "second", "reason"), [(lose, take_back, "worker_lost"), (take_back, lose, "taken_back")]
)
def test_recovery_and_take_back_step_over_each_other(first, second, reason):
    case = make("expired", Fence.RIGHT)
    with holding():
        first("default")
        assert Other(lambda: second(ENGINE)).answer() == []
    assert second("default") == []
    assert_ended_once(case, "Enqueued", reason, "WorkerLost")


def test_two_neighbours_that_take_back_at_once_share_the_jobs():
    cases = [make("processing", Fence.RIGHT) for _ in range(40)]
    answers = together([lambda: take_back(ENGINE, limit=7)] * 4)
    rest = [done for _ in range(6) for done in take_back("default", limit=7)]
    ended = [done.id for answer in [*answers, rest] for done in answer]
    assert sorted(ended) == sorted(case.made.id for case in cases)
    assert rows.total("lost") == len(cases)
    for case in cases:
        assert len(rows.attempts(case.made.id)) == len(rows.history(case.made.id)) == 1


def test_a_release_that_waited_for_the_take_back_gives_nothing_back_a_second_time():
    case = make("processing", Fence.RIGHT)
    with holding():
        take_back("default")
        held = [(case.made.id, case.token)]
        late = Other(lambda: transitions.release(held, worker_id=CALLER, using=ENGINE))
        late.is_waiting()
    assert late.answer() == []
    assert_ended_once(case, "Enqueued", "taken_back", "WorkerLost")


def test_a_cancel_that_is_being_asked_for_is_seen_by_the_next_look():
    case, other = make("processing", Fence.RIGHT), make("processing", Fence.RIGHT)
    with holding():
        transitions.cancel([case.made.id], actor="ana")
        assert [done.id for done in Other(lambda: take_back(ENGINE)).answer()] == [other.made.id]
    assert [(done.id, done.state) for done in take_back("default")] == [(case.made.id, State.CANCELLED)]
    assert rows.attempts(case.made.id)[0]["outcome"] == "WorkerLost"


def test_a_claim_after_the_take_back_has_another_token_than_the_dead_owner():
    case = make("processing", Fence.RIGHT)
    take_back("default")
    assert rows.job(case.made.id)["dispatch_id"] != case.token
    renewal = transitions.renew([(case.made.id, case.token)], worker_id=CALLER, lease=60)
    assert renewal.lost == {case.token}


def test_the_take_back_is_not_starved_by_rows_that_somebody_keeps_locked():
    cases = sorted((make("processing", Fence.RIGHT) for _ in range(6)), key=lambda case: case.made.id)
    with rival() as slow:
        for case in cases[:3]:
            lock(slow, case.made.id)
        found = Other(lambda: take_back(ENGINE, limit=3)).answer()
        assert [done.id for done in found] == [case.made.id for case in cases[3:]]
    assert len(take_back("default", limit=3)) == 3
