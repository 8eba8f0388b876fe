"""A cancel against every other way out of a running job, whichever of the two is first."""

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import Outcome, Reason, State, Waiting
from jobs.transitions import Settled
from tests.races.two import Other, holding
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, ERROR, Fence, child_lost, ending, lose, make, snooze, take_back

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"


def timed_out(case, to):
    return ending(case, to, outcome=Outcome.TIMED_OUT, error=ERROR)


def not_alone(case):
    fields = {"outcome": Outcome.INTERRUPTED, "reason": Reason.NOT_ALONE, "waiting_for": Waiting.RETRY}
    return ending(case, State.SCHEDULED, counted=False, error=None, **fields)


ENDS = {
    "it fails for the last time": lambda case: ending(case, State.FAILED),
    "it is retried": lambda case: ending(case, State.SCHEDULED),
    "it has run too long": lambda case: timed_out(case, State.SCHEDULED),
    "it has run too long for the last time": lambda case: timed_out(case, State.FAILED),
    "it snoozes": snooze,
    "its child is lost": child_lost,
    "its worker gives it back": lambda case: ending(case, State.ENQUEUED),
    "it was to run alone": not_alone,
}
# By others than a settle of its owner: what each answers, as the jobs' states.
LOSSES = {"its lease has ended": ("expired", lose), "its worker is dead": ("processing", take_back)}


def settle(case, how, using="default"):
    return transitions.settle([ENDS[how](case)], worker_id=CALLER, using=using)


def release(case, using="default"):
    return transitions.release([(case.made.id, case.token)], worker_id=CALLER, using=using)


def cancel(case, using="default"):
    [verdict] = transitions.cancel([case.made.id], actor="ana", reason="enough", using=using)
    return verdict


def assert_cancelled_once(case, steps=1):
    history = rows.history(case.made.id)
    assert (rows.state(case.made.id), len(history)) == (State.CANCELLED, steps)
    assert (history[-1]["to_state"], history[-1]["reason"], history[-1]["actor"]) == ("Cancelled", "cancelled", "ana")
    assert len(rows.attempts(case.made.id)) == 1
    assert rows.letters(case.made.id) == []


@pytest.mark.parametrize("how", ENDS)
def test_a_cancel_that_commits_while_the_end_waits_wins(how):
    case = make("processing", Fence.RIGHT)
    with holding():
        assert cancel(case).requested
        late = Other(lambda: settle(case, how, ENGINE))
        late.is_waiting()
    assert late.answer() == [Settled(case.token, State.CANCELLED)]
    assert_cancelled_once(case)


@pytest.mark.parametrize("how", ENDS)
def test_a_cancel_that_waited_for_the_end_acts_on_what_the_job_is_then(how):
    case = make("processing", Fence.RIGHT)
    with holding():
        [settled] = settle(case, how)
        late = Other(lambda: cancel(case, ENGINE))
        late.is_waiting()
    verdict = late.answer()
    if settled.state is State.FAILED:
        assert verdict == Verdict(case.made.id, applied=False, state=State.FAILED, problem="state")
        assert len(rows.letters(case.made.id)) == 1
    else:
        assert verdict == Verdict(case.made.id, applied=True, state=State.CANCELLED)
        assert_cancelled_once(case, steps=2)


def test_a_cancel_that_commits_while_a_release_waits_wins():
    case = make("processing", Fence.RIGHT)
    with holding():
        cancel(case)
        late = Other(lambda: release(case, ENGINE))
        late.is_waiting()
    assert [done.state for done in late.answer()] == [State.CANCELLED]
    assert_cancelled_once(case)


def test_a_cancel_that_waited_for_a_release_cancels_the_waiting_job():
    case = make("processing", Fence.RIGHT)
    with holding():
        assert [done.state for done in release(case)] == [State.ENQUEUED]
        late = Other(lambda: cancel(case, ENGINE))
        late.is_waiting()
    assert (late.answer().state, late.answer().requested) == (State.CANCELLED, False)
    assert_cancelled_once(case, steps=2)


@pytest.mark.parametrize("loss", LOSSES)
def test_who_finds_the_worker_lost_steps_over_a_cancel_and_then_cancels(loss):
    situation, end = LOSSES[loss]
    case = make(situation, Fence.RIGHT)
    with holding():
        cancel(case)
        assert Other(lambda: end(ENGINE)).answer() == []
    assert [done.state for done in end("default")] == [State.CANCELLED]
    assert_cancelled_once(case)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_cancel_that_waited_for_a_loss_cancels_the_waiting_job(loss):
    situation, end = LOSSES[loss]
    case = make(situation, Fence.RIGHT)
    with holding():
        assert [done.state for done in end("default")] == [State.ENQUEUED]
        late = Other(lambda: cancel(case, ENGINE))
        late.is_waiting()
    assert late.answer().state is State.CANCELLED
    assert_cancelled_once(case, steps=2)


def test_a_cancel_while_a_suspect_is_about_to_begin_is_seen_by_its_end():
    case = make("processing", Fence.RIGHT)
    with holding():
        cancel(case)
        late = Other(lambda: transitions.begin([(case.made.id, case.token)], worker_id=CALLER, using=ENGINE))
        late.is_waiting()
    assert late.answer() == {case.token}
    assert transitions.cancels(worker_id=CALLER) == {case.token}


def test_two_cancels_at_once_ask_once_and_the_first_stands():
    case = make("processing", Fence.RIGHT)
    with holding():
        cancel(case)
        late = Other(lambda: transitions.cancel([case.made.id], actor="rui", reason="late", using=ENGINE)[0])
        late.is_waiting()
    assert (late.answer().requested, late.answer().state) == (True, State.PROCESSING)
    row = rows.job(case.made.id)
    assert (row["cancel_requested_by"], row["cancel_reason"]) == ("ana", "enough")
