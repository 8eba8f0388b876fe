"""Retention of jobs, batch by batch: where it goes on, what it looks at, and how much one statement deletes."""

from importlib import import_module

import pytest
from django.db import DataError, OperationalError, connections, transaction

from jobs import quick, transitions
from jobs.ids import new_id
from jobs.states import State
from jobs.transitions.purge import FIRST, LOOKED_AT
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, execute, make_job, make_letter, select

ended = pytest.mark.django_db
module = import_module("jobs.transitions.purge")  # whose name the verb hides


def purge(limit, after=FIRST, state=State.FAILED, using="default"):
    return transitions.purge(state, age=100, letters=1000, limit=limit, after=after, using=using)


def old(many, since=5000, **columns):
    return [make_job(State.FAILED, finished_at=ago(since - n), id=new_id(), **columns) for n in range(many)]


@ended
def test_a_call_goes_on_where_the_last_one_stopped_and_says_when_there_is_no_more():
    old(5)
    found, after = [], FIRST
    while after is not None:
        jobs, after = purge(2, after)
        found.append(jobs)
    assert found == [2, 2, 1]


@ended
def test_those_that_are_kept_are_looked_at_so_many_at_a_time_and_hold_up_none_behind_them():
    for made in old(LOOKED_AT + 5):
        make_letter(made)
    free = old(1, queue="free")[0]
    execute("UPDATE turno.jobs SET finished_at = now() - interval '200 seconds' WHERE queue = 'free'")
    jobs, after = purge(1)
    assert (jobs, after is None) == (0, False)
    assert purge(1, after).jobs == 1
    assert rows.job(free.id) is None
    assert select("SELECT count(*) AS n FROM turno.jobs") == [{"n": LOOKED_AT + 5}]


@ended
@pytest.mark.parametrize("ends", [1, 0])
def test_jobs_that_ended_at_one_instant_are_told_apart_by_their_ids(ends):
    for _ in range(6):
        make_job(State.FAILED, finished_at=ago(500 + ends))
    after, found = FIRST, 0
    while after is not None:
        jobs, after = purge(2, after)
        found += jobs
    assert found == 6


@ended
def test_jobs_that_were_executed_often_come_in_smaller_batches():
    old(3, 6000, executions=60)
    old(20)
    after, found = FIRST, []
    while after is not None:
        jobs, after = purge(10, after)
        found.append(jobs)
    assert found == [1, 1, 10, 10, 1]


@ended
def test_thousands_of_lines_of_one_job_go_in_parts(monkeypatch):
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    made = old(1)[0]
    execute(
        "INSERT INTO turno.job_logs (job_id, execution, number, message) "
        "SELECT %s, 1, n, 'x' FROM generate_series(1, 1000) AS n", made.id,
    )  # fmt: skip
    counted = Counted()
    with connections["default"].execute_wrapper(counted):
        assert purge(5).jobs == 1
    assert max(counted.rows) == 200
    assert (rows.job(made.id), rows.logs(made.id)) == (None, [])


class Counted:
    """The rows that each DELETE has deleted."""

    def __init__(self):
        self.rows = []

    def __call__(self, execute, sql, params, many, context):
        answer = execute(sql, params, many, context)
        if sql.lstrip().startswith("DELETE"):
            self.rows.append(context["cursor"].rowcount)
        return answer


@ended
def test_what_hangs_on_a_job_goes_with_it_and_its_children_stay():
    made, child = old(2)
    execute("UPDATE turno.jobs SET finished_at = now() WHERE id = %s", child.id)
    make_letter(made, resolved_at=ago(9), resolved_how="discarded")
    for sql in (
        "INSERT INTO turno.job_dependencies (child_id, parent_id) VALUES (%s, %s)",
        "INSERT INTO turno.outbox_messages (job_id, kind, queue) SELECT %s, 'dead_letter', 'q' WHERE %s IS NOT NULL",
    ):
        execute(sql, child.id, made.id)
    execute("INSERT INTO turno.job_state_changes (job_id, to_state, reason) VALUES (%s, 'Enqueued', 'x')", made.id)
    assert purge(9).jobs == 1
    assert (rows.job(made.id), rows.history(made.id), rows.letters(made.id)) == (None, [], [])
    assert rows.job(child.id) is not None
    assert select("SELECT * FROM turno.job_dependencies") == []


@COMMITTED
@pytest.mark.usefixtures("clean_tables")
def test_no_statement_of_a_batch_may_take_longer_than_two_seconds():
    with quick.batch("engine") as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("2s",)
        cursor.execute("SET LOCAL statement_timeout = '1ms'")
        with pytest.raises(OperationalError) as error:
            cursor.execute("SELECT pg_sleep(60)")
        transaction.set_rollback(True, using="engine")
    assert quick.too_slow(error.value)


@ended
def test_a_limit_of_the_callers_own_is_left_alone():
    execute("SET LOCAL statement_timeout = '7s'")
    with quick.batch("default") as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("7s",)


@ended
def test_a_job_that_is_not_deleted_in_the_end_keeps_its_whole_history(monkeypatch):
    [made] = old(1)
    execute(
        "INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason) "
        "SELECT %s, NULL, 'Enqueued', 'created' FROM generate_series(1, 300)",
        made.id,
    )
    monkeypatch.setattr(module, "LEAST_ROWS", 1)  # and so each statement deletes ROWS
    monkeypatch.setattr(module, "DELETE", "SELECT 1 / 0 FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[])")
    with pytest.raises(DataError):
        purge(1)
    assert select("SELECT count(*) AS n FROM turno.job_state_changes") == [{"n": 300}]


@ended
def test_what_takes_long_goes_on_with_the_same_jobs_at_the_next_call(monkeypatch):
    [made] = old(1)
    execute(
        "INSERT INTO turno.job_logs (job_id, execution, number, level, message) "
        "SELECT %s, 1, n, 'info', '' FROM generate_series(1, 100) AS n",
        made.id,
    )
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    monkeypatch.setattr(module, "LONGEST", -1.0)
    assert purge(1) == (0, FIRST)
    monkeypatch.undo()
    assert purge(1).jobs == 1


@ended
def test_the_place_behind_a_job_is_that_of_the_next_and_then_the_first():
    one, two = old(2)
    first = transitions.beyond(State.FAILED, age=100, after=FIRST)
    assert first.id == one.id
    second = transitions.beyond(State.FAILED, age=100, after=first)
    assert second.id == two.id
    assert transitions.beyond(State.FAILED, age=100, after=second) == FIRST
