"""Dead letters: requeued with their jobs or discarded, a verdict for each letter that was named, in its order."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import State
from tests.transitions import rows
from tests.transitions.rows import ago, make_job, make_letter

pytestmark = pytest.mark.django_db
ACTS = [transitions.discard, transitions.requeue_letters]


def dead(**columns):
    """A failed job with its pending letter: (job, letter's id)."""
    made, letter = make_job(State.FAILED, **columns), uuid4()
    make_letter(made, id=letter)
    return made, letter


def letter_of(made):
    [row] = rows.letters(made.id)
    return row["resolved_how"], row["resolved_by"]


def test_a_discarded_letter_says_by_whom_and_its_job_stays_as_it_is():
    made, letter = dead()
    before = rows.job(made.id)
    assert transitions.discard([letter], actor="ana") == [Verdict(letter, applied=True, state=State.FAILED)]
    assert letter_of(made) == ("discarded", "ana")
    assert rows.job(made.id) == before
    assert rows.history(made.id) == []


def test_a_requeued_letter_enqueues_its_job_and_is_resolved():
    made, letter = dead()
    assert transitions.requeue_letters([letter], actor="ana") == [Verdict(letter, applied=True, state=State.ENQUEUED)]
    assert letter_of(made) == ("requeued", "ana")
    assert rows.edges(made.id) == [("Failed", "Enqueued", "requeued")]


@pytest.mark.parametrize("act", ACTS)
def test_each_letter_gets_its_verdict_in_the_order_of_the_call(act):
    first, one = dead()
    _second, two = dead()
    missing, old = uuid4(), uuid4()
    make_letter(first, id=old, resolved_at=ago(9), resolved_how="discarded", resolved_by="rui")
    verdicts = act([two, missing, old, one])
    assert [verdict.id for verdict in verdicts] == [two, missing, old, one]
    assert [verdict.problem for verdict in verdicts] == [None, "not_found", "resolved", None]
    assert [verdict.applied for verdict in verdicts] == [True, False, False, True]


@pytest.mark.parametrize("act", ACTS)
def test_no_letter_named_is_no_verdict(act):
    assert act([]) == []


@pytest.mark.parametrize("act", ACTS)
def test_a_letter_named_twice_is_acted_on_once(act):
    made, letter = dead()
    first, second = act([letter, letter])
    assert first == second
    assert first.applied
    assert len(rows.history(made.id)) == (act is transitions.requeue_letters)


def test_an_old_letter_does_not_requeue_a_job_that_has_failed_again():
    made, new = dead()
    old = uuid4()
    make_letter(made, id=old, resolved_at=ago(9), resolved_how="requeued")
    assert [v.problem for v in transitions.requeue_letters([old])] == ["resolved"]
    assert rows.state(made.id) == State.FAILED
    assert [v.problem for v in transitions.requeue_letters([new])] == [None]


def test_a_discarded_letter_is_not_requeued():
    made, letter = dead()
    transitions.discard([letter])
    assert [v.problem for v in transitions.requeue_letters([letter])] == ["resolved"]
    assert rows.state(made.id) == State.FAILED


def test_a_held_unique_key_stops_its_letter_and_no_other():
    (keyed, first), (free, second) = dead(unique_key="k"), dead()
    make_job(State.ENQUEUED, unique_key="k")
    assert [v.problem for v in transitions.requeue_letters([first, second])] == ["unique_key", None]
    assert (rows.state(keyed.id), rows.state(free.id)) == (State.FAILED, State.ENQUEUED)
    assert letter_of(keyed) == (None, None)


def test_a_discarded_letter_keeps_its_job_from_retention_no_longer():
    made, letter = dead(finished_at=ago(500))
    assert transitions.purge(State.FAILED, age=60, letters=3600, limit=9).jobs == 0
    transitions.discard([letter])
    assert transitions.purge(State.FAILED, age=60, letters=3600, limit=9).jobs == 1
    assert rows.job(made.id) is None
