"""Dead letters under two hands: requeue, discard, delete and retention of one letter at once."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import State
from tests.races.two import Other, holding, rival, together
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, make_job, make_letter

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


def dead(**columns):
    made, letter = make_job(State.FAILED, **columns), uuid4()
    make_letter(made, id=letter)
    return made, letter


@pytest.mark.parametrize("late", [transitions.discard, transitions.requeue_letters])
def test_whoever_waited_for_a_requeue_finds_the_letter_resolved(late):
    made, letter = dead()
    with holding():
        transitions.requeue([made.id])
        other = Other(lambda: late([letter], using="engine"))
        other.is_waiting()
    assert other.answer() == [Verdict(letter, applied=False, state=State.ENQUEUED, problem="resolved")]
    assert [row["resolved_how"] for row in rows.letters(made.id)] == ["requeued"]
    assert len(rows.history(made.id)) == 1


@pytest.mark.parametrize("late", [transitions.discard, transitions.requeue_letters])
def test_whoever_waited_for_a_discard_finds_the_letter_resolved(late):
    made, letter = dead()
    with holding():
        transitions.discard([letter])
        other = Other(lambda: late([letter], using="engine"))
        other.is_waiting()
    assert other.answer() == [Verdict(letter, applied=False, state=State.FAILED, problem="resolved")]
    assert rows.state(made.id) == State.FAILED


@pytest.mark.parametrize("late", [transitions.discard, transitions.requeue_letters])
def test_a_discard_that_is_rolled_back_leaves_the_letter_to_the_next(late):
    _made, letter = dead()
    with holding(roll_back=True):
        transitions.discard([letter])
        other = Other(lambda: late([letter], using="engine"))
        other.is_waiting()
    assert [verdict.applied for verdict in other.answer()] == [True]


@pytest.mark.parametrize("late", [transitions.discard, transitions.requeue_letters])
def test_whoever_waited_for_a_delete_finds_no_letter(late):
    (made, letter), (_free, other_letter) = dead(), dead()
    with holding():
        transitions.delete([made.id])
        other = Other(lambda: late([letter, other_letter], using="engine"))
        other.is_waiting()
    assert [verdict.problem for verdict in other.answer()] == ["not_found", None]


def test_a_requeue_of_the_job_that_waited_for_a_discard_enqueues_it_and_leaves_the_letter_discarded():
    made, letter = dead()
    with holding():
        transitions.discard([letter])
        other = Other(lambda: transitions.requeue([made.id], using="engine"))
        other.is_waiting()
    assert other.answer() == [Verdict(made.id, applied=True, state=State.ENQUEUED)]
    assert [row["resolved_how"] for row in rows.letters(made.id)] == ["discarded"]


def test_retention_steps_over_a_letter_that_is_being_discarded():
    _made, letter = dead(finished_at=ago(500))
    with holding():
        transitions.discard([letter])
        purge = Other(lambda: transitions.purge(State.FAILED, age=60, letters=60, limit=9, using="engine"))
        assert purge.answer().jobs == 0


def test_a_letter_that_another_transaction_holds_is_waited_for():
    _made, letter = dead()
    with rival() as other:
        other.execute("SELECT 1 FROM turno.dead_letters WHERE id = %s FOR UPDATE", [letter])
        late = Other(lambda: transitions.discard([letter], using="engine"))
        late.is_waiting()
        other.rollback()
    assert late.answer()[0].applied


def test_a_crowd_that_requeues_and_discards_the_same_letters_resolves_each_once():
    made = [dead() for _ in range(40)]
    letters = [letter for _, letter in made]
    calls = [
        lambda: transitions.requeue_letters(letters, using="engine"),
        lambda: transitions.discard(letters[::-1], using="engine"),
        lambda: transitions.requeue([job.id for job, _ in made[::-1]], using="engine"),
        lambda: transitions.requeue_letters(letters[::-1], using="engine"),
    ]
    answers = together(calls)
    resolved = [verdict.id for verdicts in answers[:2] + answers[3:] for verdict in verdicts if verdict.applied]
    assert len(resolved) == len(set(resolved))
    assert all(row["resolved_at"] for job, _ in made for row in rows.letters(job.id))
    assert all(len(rows.history(job.id)) <= 1 for job, _ in made)
