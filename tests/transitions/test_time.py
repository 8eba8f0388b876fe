"""Promotion and retention: what the clock of the database does to jobs."""

import pytest

from jobs import transitions
from jobs.states import ACTIVE, State
from jobs.transitions.promote import NEXT_DUE
from tests.transitions import rows
from tests.transitions.ear import raw_connection
from tests.transitions.rows import ago, ahead, make_job, make_letter

pytestmark = pytest.mark.django_db


def due(**columns):
    return make_job(State.SCHEDULED, **({"run_at": ago(1)} | columns))


def test_the_earliest_instants_are_promoted_first():
    mades = [due(run_at=ago(10 + n)) for n in range(3)]
    assert transitions.promote(limit=2) == 2
    assert [rows.state(made.id) for made in mades] == ["Scheduled", "Enqueued", "Enqueued"]
    assert transitions.promote(limit=2) == 1
    assert transitions.promote(limit=2) == 0


def test_a_job_is_due_at_its_very_instant_and_not_before():
    made, later = due(run_at=ago(0)), due(run_at=ahead(0.001))
    transitions.promote(limit=9)
    assert (rows.state(made.id), rows.state(later.id)) == ("Enqueued", "Scheduled")


def test_a_promoted_job_waits_in_its_queue_from_now_on():
    made = due(enqueued_at=ago(500), announced_at=ago(500), priority=3)
    transitions.promote(limit=9)
    row = rows.job(made.id)
    assert row["enqueued_at"] == rows.select("SELECT now() AS now")[0]["now"]
    assert (row["announced_at"], row["priority"]) == (None, 3)


def test_the_next_instant_is_told_in_seconds():
    assert transitions.next_due() is None
    make_job(State.SCHEDULED, waiting_for="parents")
    assert transitions.next_due() is None
    due(run_at=ahead(90))
    due(run_at=ahead(30.5))
    assert transitions.next_due() == 30.5
    due(run_at=ago(90))
    assert transitions.next_due() == 0


def test_what_is_due_beyond_the_hour_is_of_no_interest():
    due(run_at=ahead(3700))
    assert transitions.next_due() is None


def test_who_inserts_jobs_for_next_month_does_not_hold_up_the_look_for_the_next_instant():
    """An index has what is not committed too: each look for the first instant visited all of it."""
    many = """INSERT INTO turno.jobs (id, type, queue, payload, state, waiting_for, run_at)
        SELECT gen_random_uuid(), 'test.any', 'default', '{}', 'Scheduled', 'due', now() + interval '30 days'
        FROM generate_series(1, 3000)"""
    with raw_connection() as other, other.transaction(force_rollback=True):
        other.execute(many)
        rows.execute("SET LOCAL enable_sort = off")  # that the plan is by the instants, whatever the statistics say
        [plan] = rows.select(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {NEXT_DUE}")
    [explained] = plan["QUERY PLAN"]
    assert explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"] < 300


def ended(seconds_ago, state=State.SUCCEEDED):
    return make_job(state, finished_at=ago(seconds_ago))


def purge(state=State.SUCCEEDED, age=100, letters=1000, limit=10):
    return transitions.purge(state, age=age, letters=letters, limit=limit).jobs


def test_the_oldest_ends_are_deleted_first_and_never_more_than_the_limit():
    mades = [ended(200 + n) for n in range(5)]
    young = ended(99)
    assert purge(limit=2) == 2
    assert [rows.job(made.id) is None for made in mades] == [False, False, False, True, True]
    assert purge(limit=9) == 3
    assert purge(limit=9) == 0
    assert rows.job(young.id) is not None


def test_only_the_state_that_is_named_is_deleted():
    kept = [ended(200, state) for state in (State.SUCCEEDED, State.CANCELLED)]
    ended(200, State.FAILED)
    assert purge(State.FAILED) == 1
    assert all(rows.job(made.id) for made in kept)


def test_a_pending_dead_letter_keeps_its_job_until_it_is_old_itself():
    pending, old, resolved = (ended(5000, State.FAILED) for _ in range(3))
    make_letter(pending, created_at=ago(999))
    make_letter(old, created_at=ago(1001))
    make_letter(resolved, created_at=ago(999), resolved_at=ago(1), resolved_how="discarded")
    assert purge(State.FAILED) == 2
    assert rows.job(pending.id) is not None
    assert rows.job(old.id) is rows.job(resolved.id) is None


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_an_active_state_is_never_purged(state):
    with pytest.raises(ValueError, match="not final"):
        purge(state)
