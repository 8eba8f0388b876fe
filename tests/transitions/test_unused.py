"""Types that are gone: their rows go long after the last worker that had them, and never while somebody needs them."""

import pytest
from django.db import connections

from jobs import transitions
from jobs.ratelimit import Limits, RateLimit
from jobs.states import State
from jobs.transitions.unused import FORGET_CIRCUITS, HOLD_TYPES, TYPES
from tests.database.explain import indexes_used, tables_scanned
from tests.races.two import Other, holding
from tests.transitions import COMMITTED
from tests.transitions.recurring import make_many
from tests.transitions.rows import execute, make_job, make_jobs, select
from tests.transitions.test_plans import plan_with_values, plan_without_values

db = pytest.mark.django_db
LONG = 100.0


def seen(name, age="2 hours", **columns):
    row = {"name": name} | columns
    execute(
        f"INSERT INTO turno.job_types ({', '.join(row)}, last_served_at) VALUES ({', '.join(['%s'] * len(row))}, "
        f"now() - interval '{age}')", *row.values(),
    )  # fmt: skip


def names():
    return [row["name"] for row in select("SELECT name FROM turno.job_types ORDER BY name")]


def forget(limit=9):
    return transitions.forget_types(age=LONG, limit=limit)


@db
def test_a_type_that_nobody_has_served_for_long_is_forgotten_with_its_rate():
    transitions.declare_limits({"old": Limits(3, RateLimit(5, 60.0))})
    execute("UPDATE turno.job_types SET first_seen_at = now() - interval '2 hours'")
    seen("served", "10 seconds")
    assert (forget(), names()) == (1, ["served"])
    assert select("SELECT * FROM turno.rates") == []
    assert transitions.declare_limits({"old": Limits(3, RateLimit(5, 60.0))}) == ["old"]


@db
@pytest.mark.parametrize("state", [State.SUCCEEDED, State.ENQUEUED])
def test_one_of_which_there_is_a_job_stays(state):
    seen("old")
    make_job(state, type="old")
    assert (forget(), names()) == (0, ["old"])


@db
def test_one_that_a_schedule_has_or_whose_limits_a_person_has_set_stays():
    seen("scheduled")
    seen("limited", limits_by="ana")
    make_many(1, type="'scheduled'")
    assert (forget(), names()) == (0, ["limited", "scheduled"])


@db
def test_only_so_many_at_once():
    for n in range(5):
        seen(f"t{n}")
    assert [forget(2), forget(2), forget(2)] == [2, 2, 1]


@COMMITTED
@pytest.mark.usefixtures("clean_tables")
def test_a_type_whose_key_somebody_has_locked_is_passed_over():
    seen("old")
    with holding():
        transitions.set_limits("old", Limits(2), actor="ana")
        assert Other(lambda: transitions.forget_types(age=LONG, limit=9, using="engine")).answer() == 0
    assert names() == ["old"]


def broken(name, state="closed", ago="2 hours"):
    execute(
        "INSERT INTO turno.circuits (type, state, opened_at, closed_at, retry_at) "
        f"VALUES (%s, %s, now() - interval '3 hours', now() - interval '{ago}', now())", name, state,
    )  # fmt: skip


@db
def test_a_breaker_that_closed_long_ago_is_forgotten_and_no_other():
    broken("old")
    broken("open", "open")
    broken("lately", ago="10 seconds")
    broken("used")
    make_job(State.SUCCEEDED, type="used")
    assert transitions.forget_circuits(age=LONG, limit=9) == 1
    assert [row["type"] for row in select("SELECT type FROM turno.circuits ORDER BY type")] == [
        "lately",
        "open",
        "used",
    ]


@db
@pytest.mark.parametrize("statement", [TYPES, HOLD_TYPES, FORGET_CIRCUITS], ids=["types", "their lock", "breakers"])
@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
def test_whether_there_is_a_job_of_a_type_is_looked_up(statement, look):
    make_jobs(5000, State.SUCCEEDED, type="a.type")
    seen("a.type")
    seen("old")
    execute("ANALYZE turno.jobs, turno.job_types")  # rolled back with the test
    with connections["default"].cursor() as cursor:
        plan = look(cursor, statement, {"age": LONG, "limit": 500, "names": ["a.type", "old"]})
    assert "jobs_by_type" in indexes_used(plan)
    assert "jobs" not in tables_scanned(plan)
