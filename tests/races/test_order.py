"""Law 6: one lock order, and what is done about those who keep another."""

from uuid import uuid4

import pytest
from django.db import OperationalError, connections, transaction

from jobs import transitions
from jobs.states import State
from jobs.transitions import Note
from tests.races.two import Other, is_free, lock, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Case, Fence, claimant, ending
from tests.transitions.rows import make_job

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"

VERBS = {
    "settle": (
        State.PROCESSING,
        lambda cases: transitions.settle([ending(c, State.SUCCEEDED) for c in cases], worker_id=CALLER, using=ENGINE),
    ),
    "release": (
        State.PROCESSING,
        lambda cases: transitions.release([(c.made.id, c.token) for c in cases], worker_id=CALLER, using=ENGINE),
    ),
    "note": (
        State.PROCESSING,
        lambda cases: transitions.note(
            [Note(c.made.id, c.token, progress=9) for c in cases], worker_id=CALLER, using=ENGINE
        ),
    ),
    "begin": (
        State.PROCESSING,
        lambda cases: transitions.begin([(c.made.id, c.token) for c in cases], worker_id=CALLER, using=ENGINE),
    ),
    "claim": (
        State.ENQUEUED,
        lambda cases: transitions.claim([(c.made.id, c.token, 0) for c in cases], **claimant(), using=ENGINE),
    ),
    "cancel": (State.ENQUEUED, lambda cases: transitions.cancel([c.made.id for c in cases], using=ENGINE)),
    "requeue": (State.FAILED, lambda cases: transitions.requeue([c.made.id for c in cases], using=ENGINE)),
    "run_now": (State.SCHEDULED, lambda cases: transitions.run_now([c.made.id for c in cases], using=ENGINE)),
    "delete": (State.FAILED, lambda cases: transitions.delete([c.made.id for c in cases], using=ENGINE)),
}


def two(state):
    """Two jobs in `state`, in the order of their ids."""
    mades = [make_job(state, id=id_, worker=CALLER) for id_ in sorted(uuid4() for _ in range(2))]
    return [Case(str(state), Fence.RIGHT, made) for made in mades]


@pytest.mark.parametrize("verb", VERBS)
def test_a_batch_locks_jobs_by_id_whatever_order_it_was_given_in(verb):
    state, call = VERBS[verb]
    low, high = two(state)
    with rival() as other:
        lock(other, low.made.id)
        late = Other(lambda: call([high, low]))
        late.is_waiting()
        assert is_free(high.made.id)
        other.commit()
    assert len(late.answer()) == 2


def impatience(milliseconds):
    """The statement that makes a connection find a deadlock soon; only a superuser may, others wait for a second."""
    return (
        f"SELECT set_config('deadlock_timeout', '{milliseconds}', false) WHERE current_setting('is_superuser') = 'on'"
    )


@pytest.mark.parametrize("verb", ["settle", "cancel"])
def test_a_batch_that_a_deadlock_ended_is_repeated_and_lands(verb):
    state, call = VERBS[verb]
    low, high = two(state)
    with rival() as other:
        other.execute(impatience(15_000))
        lock(other, high.made.id)
        late = Other(lambda: call([low, high]), before=impatience(50))
        late.is_waiting()
        lock(other, low.made.id)  # granted when the batch is the victim
        other.commit()
    assert len(late.answer()) == 2
    for case in (low, high):
        assert len(rows.history(case.made.id)) == 1


REPEATABLE_READ = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"


def test_a_batch_that_could_not_be_serialized_is_repeated_and_lands():
    low, high = two(State.PROCESSING)
    with rival() as other:
        other.execute("UPDATE turno.jobs SET stage = 'moved' WHERE id = %s", [low.made.id])
        late = Other(lambda: VERBS["settle"][1]([low, high]), before=REPEATABLE_READ)
        late.is_waiting()
        other.commit()
    assert [settled.state for settled in late.answer()] == [State.SUCCEEDED] * 2
    assert rows.job(low.made.id)["stage"] == "moved"


def test_within_the_transaction_of_a_caller_a_conflict_is_the_caller_s():
    low, high = two(State.PROCESSING)

    def joined():
        with transaction.atomic(using=ENGINE):
            with connections[ENGINE].cursor() as cursor:
                cursor.execute("SELECT 1 FROM turno.jobs")
            return VERBS["settle"][1]([low, high])

    with rival() as other:
        other.execute("UPDATE turno.jobs SET stage = 'moved' WHERE id = %s", [low.made.id])
        late = Other(joined, before=REPEATABLE_READ)
        late.is_waiting()
        other.commit()
    with pytest.raises(OperationalError, match="could not serialize"):
        late.answer()
    assert rows.state(high.made.id) == State.PROCESSING
