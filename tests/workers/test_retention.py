"""The routine of retention: batches that adapt, rounds with pauses, rules that fail alone, what people see of it."""

import logging

import psycopg
import pytest
from django.db import OperationalError
from psycopg.errors import AdminShutdown, QueryCanceled, lookup

from jobs import queries, upkeep
from jobs.conf import overridden
from jobs.states import State
from tests.transitions import COMMITTED
from tests.transitions.rows import ago, execute, make_job, select
from workers import retention as module
from workers.connections import ENGINE
from workers.pacing import QUICK, SLOW, Pace
from workers.retention import Batch, Retention, Rule


class Clock:
    """A batch takes `takes` seconds by it."""

    def __init__(self):
        self.now, self.takes = 0.0, 0.0

    def __call__(self):
        self.now += self.takes / 2
        return self.now


def too_slow():
    error = OperationalError("canceling statement due to statement timeout")
    error.__cause__ = QueryCanceled()
    return error


def sizes(pace, clock, *takes, most=100):
    found = []

    def batch(size):
        found.append(size)
        return size

    for seconds in takes:
        clock.takes = seconds * 2
        pace.run(batch, most)
    return found


def test_a_batch_that_took_long_is_followed_by_half_and_quick_ones_grow_again():
    clock = Clock()
    pace = Pace(clock)
    assert sizes(pace, clock, SLOW * 2, SLOW * 2, 0.3, QUICK / 2, QUICK / 2, 0, 0) == [100, 50, 25, 25, 50, 100, 100]


def test_a_batch_has_one_row_at_least_and_never_more_than_is_set():
    clock = Clock()
    pace = Pace(clock)
    assert min(sizes(pace, clock, *[9.0] * 12)) == 1
    assert sizes(pace, clock, 0, 0, most=3) == [1, 2]
    assert sizes(pace, clock, 0, 0, most=3) == [3, 3]
    assert sizes(pace, clock, 0, most=2) == [2]


def test_a_statement_that_was_cancelled_is_tried_with_a_quarter_and_of_one_row_it_is_told():
    pace, asked = Pace(), []

    def batch(size):
        asked.append(size)
        raise too_slow()

    assert [pace.run(batch, 20), pace.run(batch, 20)] == [None, None]
    with pytest.raises(OperationalError):
        pace.run(batch, 20)
    assert asked == [20, 5, 1]


def test_any_other_error_of_the_database_is_not_taken_for_slowness():
    def batch(size):
        raise OperationalError("gone")

    pace = Pace()
    with pytest.raises(OperationalError):
        pace.run(batch, 20)
    assert pace.size == 20


@pytest.fixture
def ruled(monkeypatch, transactional_db):
    """A routine with these rules: (name, answers in turn)."""

    def made(**answers):
        def batch(name):
            def run(limit, kept):
                answer = answers[name].pop(0) if answers[name] else Batch(0, False)
                if isinstance(answer, Exception):
                    raise answer
                return answer

            return run

        monkeypatch.setattr(module, "rules", lambda: [Rule(name, batch(name)) for name in answers])
        return Retention()

    yield made
    execute("DELETE FROM turno.counters")


@COMMITTED
def test_rounds_follow_each_other_with_pauses_until_nothing_is_left(ruled):
    routine = ruled(a=[Batch(5, True), Batch(2, False)], b=[Batch(1, False)])
    with overridden(retention={"interval": "77s"}):
        assert routine.interval() == 77
        assert routine.run_once() == 6
        assert module.LEAST_PAUSE <= routine.interval() < 77
        assert (routine.run_once(), routine.interval()) == (2, 77)


@COMMITTED
def test_a_rule_that_fails_stops_no_other_and_is_told(ruled, caplog):
    routine = ruled(a=[ValueError("no")], b=[Batch(1, False)])
    assert routine.run_once() == 1
    [told] = [record for record in caplog.records if record.msg == "retention.failed"]
    assert (told.rule, told.levelno) == ("a", logging.ERROR)


@COMMITTED
def test_a_statement_that_is_too_slow_even_for_one_row_is_told_and_stops_no_other(ruled, caplog):
    routine = ruled(a=[too_slow(), too_slow()], b=[Batch(1, False), Batch(1, False)])
    with overridden(retention={"batch_size": 4}):
        assert routine.run_once() == 1
        assert routine.interval() < 60  # it is tried again soon, with fewer rows
        assert routine.run_once() == 1
    assert [record.rule for record in caplog.records if record.msg == "retention.too_slow"] == ["a"]


@COMMITTED
def test_a_database_that_is_away_ends_the_round(ruled, monkeypatch):
    routine = ruled(a=[OperationalError("gone")], b=[Batch(1, False)])
    monkeypatch.setattr(module.connections[ENGINE], "is_usable", lambda: False)
    with pytest.raises(OperationalError):
        routine.run_once()


@COMMITTED
@pytest.mark.parametrize("cause", [AdminShutdown, psycopg.OperationalError], ids=["pooler", "another is open"])
def test_a_server_that_went_away_ends_the_round_although_the_connection_can_be_used(ruled, cause):
    error = OperationalError("server closed the connection unexpectedly")
    error.__cause__ = cause()
    routine = ruled(a=[error], b=[Batch(1, False)])
    module.connections[ENGINE].ensure_connection()
    with pytest.raises(OperationalError):
        routine.run_once()


@COMMITTED
@pytest.mark.parametrize("state", [None, "58P01", "58030", "53200", "53400", "XX001"])
def test_an_error_of_one_table_only_stops_no_other_rule(ruled, caplog, state):
    error = OperationalError("invalid page in block 7")
    error.__cause__ = None if state is None else lookup(state)()
    routine = ruled(a=[error], b=[Batch(1, False)])
    module.connections[ENGINE].ensure_connection()
    assert routine.run_once() == 1
    assert [record.rule for record in caplog.records if record.msg == "retention.failed"] == ["a"]


@COMMITTED
@pytest.mark.usefixtures("clean_tables")
def test_a_job_that_cannot_be_deleted_in_time_keeps_no_other_from_going(monkeypatch):
    fat, other = (make_job(State.SUCCEEDED, finished_at=ago(age)) for age in (500, 400))
    purge = module.transitions.purge

    def slow_at_the_first(*arguments, after, **options):
        if after == module.FIRST:
            raise too_slow()
        return purge(*arguments, after=after, **options)

    monkeypatch.setattr(module.transitions, "purge", slow_at_the_first)
    with overridden(retention={"succeeded": 100, "batch_size": 1}):
        routine = Retention()
        routine.run_once()
        routine.run_once()
    assert select("SELECT id FROM turno.jobs") == [{"id": fat.id}]
    assert other.id != fat.id


@COMMITTED
def test_what_is_gone_is_logged_by_table_and_counted_for_ever(ruled, caplog):
    caplog.set_level(logging.INFO)
    routine = ruled(a=[Batch(5, True), Batch(2, False)], b=[Batch(1, False)])
    routine.run_once()
    assert "retention" not in [record.msg for record in caplog.records]  # there is more to come
    routine.run_once()
    [told] = [record for record in caplog.records if record.msg == "retention"]
    assert told.rows == {"a": 7, "b": 1}
    upkeep.count("a", 3)
    assert queries.retained() == {"a": 10, "b": 1}


@COMMITTED
@pytest.mark.usefixtures("clean_tables")
def test_every_table_is_kept_for_its_own_time():
    for state, age in ((State.SUCCEEDED, 50), (State.CANCELLED, 150), (State.FAILED, 250)):
        for older in (-10, 10):
            make_job(state, finished_at=ago(age + older))
    execute(
        "INSERT INTO public.django_session (session_key, session_data, expire_date) "
        "VALUES ('over', '', now() - interval '1 s'), ('lives', '', now() + interval '1 h')"
    )
    kept = {"succeeded": 50, "cancelled": 150, "failed": 250, "batch_size": 1}
    with overridden(retention=kept):
        routine = Retention()
        while routine.run_once():
            pass
    assert select("SELECT state, count(*) AS n FROM turno.jobs GROUP BY 1 ORDER BY 1") == [
        {"state": "Cancelled", "n": 1}, {"state": "Failed", "n": 1}, {"state": "Succeeded", "n": 1},
    ]  # fmt: skip
    assert select("SELECT session_key FROM django_session") == [{"session_key": "lives"}]
    assert queries.retained()["jobs_failed"] == 1
    execute("DELETE FROM django_session")
