"""Deadlocks and serialization errors: the whole batch is tried again, and where that never helps nothing is written."""

from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection

from jobs import transitions
from jobs.states import State
from jobs.transitions.sql import TRIES, sqlstate
from tests.races.test_order import REPEATABLE_READ, impatience
from tests.races.two import Other, lock, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, claimant, ending, lose, make, take_back

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
# A server that finds a conflict each time, at the last table that an end writes to; the sequence counts the times,
# since it alone is not rolled back.
CONFLICTS = """
CREATE SEQUENCE conflicts;
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('conflicts') <= TG_ARGV[0]::int THEN
        RAISE EXCEPTION 'no luck' USING ERRCODE = TG_ARGV[1];
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER conflict BEFORE INSERT ON turno.{table} FOR EACH STATEMENT EXECUTE FUNCTION conflict({times}, '{code}')
"""
PEACE = "DROP FUNCTION conflict CASCADE; DROP SEQUENCE conflicts"


@contextmanager
def conflicts(times, code, table="metrics_minute"):
    """The first `times` statements that write to the table fail; answers a function that says how many came."""
    rows.execute(CONFLICTS.format(times=times, code=code, table=table))
    try:
        yield lambda: rows.select("SELECT last_value FROM conflicts")[0]["last_value"]
    finally:
        rows.execute(PEACE)


def processing(count):
    return [make("processing", Fence.RIGHT) for _ in range(count)]


def settle(cases, to=State.SUCCEEDED):
    return transitions.settle([ending(case, to) for case in cases], worker_id=CALLER, using=ENGINE)


def assert_untouched(cases):
    for case in cases:
        assert rows.state(case.made.id) == State.PROCESSING
        assert rows.history(case.made.id) == rows.attempts(case.made.id) == rows.letters(case.made.id) == []
    assert rows.metrics() == []


@pytest.mark.parametrize("code", ["40P01", "40001"])
@pytest.mark.parametrize("to", [State.SUCCEEDED, State.SCHEDULED, State.FAILED, State.ENQUEUED])
def test_a_batch_is_tried_again_whole_until_it_lands(code, to):
    cases = processing(3)
    with conflicts(TRIES - 1, code) as count:
        assert [settled.state for settled in settle(cases, to)] == [to] * 3
        assert count() == TRIES
    assert [len(rows.attempts(case.made.id)) for case in cases] == [1] * 3


@pytest.mark.parametrize("code", ["40P01", "40001"])
@pytest.mark.parametrize("verb", [settle, lambda cases: lose(ENGINE), lambda cases: take_back(ENGINE)])
def test_after_its_tries_it_raises_and_nothing_is_half_written(code, verb):
    cases = [make("expired", Fence.RIGHT) for _ in range(3)]
    with conflicts(1000, code) as count:
        with pytest.raises(OperationalError) as failed:
            verb(cases)
        assert (sqlstate(failed.value), count()) == (code, TRIES)
        assert_untouched(cases)
    assert verb(cases)


def test_a_conflict_is_no_data_error_and_halves_no_batch():
    cases = processing(4)
    with conflicts(1000, "40001") as count, pytest.raises(OperationalError):
        settle(cases)
    with conflicts(0, "40001") as count:  # had it been halved, more had come than its tries
        settle(cases)
        assert count() == 1


def test_a_bad_row_and_a_conflict_in_one_batch_are_each_dealt_with():
    cases = processing(4)
    ends = [ending(case, State.SUCCEEDED, **({"result": "{"} if n == 2 else {})) for n, case in enumerate(cases)]
    with conflicts(2, "40P01"):
        answer = transitions.settle(ends, worker_id=CALLER, using=ENGINE)
    assert [settled.state for settled in answer] == ["Succeeded", "Succeeded", "Failed", "Succeeded"]
    assert [len(rows.attempts(case.made.id)) for case in cases] == [1] * 4


@pytest.mark.parametrize("verb", ["note", "release", "claim"])
def test_the_other_writes_of_an_owner_are_tried_again_as_well(verb):
    case = make("enqueued" if verb == "claim" else "processing", Fence.RIGHT)
    name = (case.made.id, case.token)
    calls = {
        "note": lambda: transitions.note([transitions.Note(*name, progress=9)], worker_id=CALLER, using=ENGINE),
        "release": lambda: transitions.release([name], worker_id=CALLER, using=ENGINE),
        "claim": lambda: transitions.claim([(*name, 1)], **claimant(), using=ENGINE),
    }
    with rival() as other:
        other.execute("UPDATE turno.jobs SET priority = 7 WHERE id = %s", [case.made.id])
        late = Other(calls[verb], before=REPEATABLE_READ)
        late.is_waiting()
        other.commit()
    assert late.answer()
    assert rows.job(case.made.id)["priority"] == 7


def test_two_batches_in_a_real_deadlock_both_land():
    """A rival without the order: the engine's batch is the victim, and is tried again after the rival's commit."""
    low, high = sorted(processing(2), key=lambda case: case.made.id)
    with rival() as other:
        other.execute(impatience(15_000))
        lock(other, high.made.id)
        late = Other(lambda: settle([high, low], State.FAILED), before=impatience(50))
        late.is_waiting()
        lock(other, low.made.id)  # granted when the batch is the victim
        other.execute("UPDATE turno.jobs SET stage = 'rival' WHERE id = %s", [low.made.id])
        other.commit()
    assert [settled.state for settled in late.answer()] == [State.FAILED] * 2
    assert rows.job(low.made.id)["stage"] == "rival"
    assert [len(rows.letters(case.made.id)) for case in (low, high)] == [1, 1]


def test_a_conflict_leaves_the_connection_usable():
    case = processing(1)
    with conflicts(1000, "40001"), pytest.raises(OperationalError):
        settle(case)
    assert not connection.in_atomic_block
    assert settle(case)[0].state is State.SUCCEEDED
