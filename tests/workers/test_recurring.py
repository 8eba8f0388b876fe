"""The leader's routine of recurring jobs: how long it sleeps, what it passes over; and the declared ones, once."""

import pytest
from django.utils import translation

from jobs.conf import overridden
from tests.jobs.enqueue_types import registered
from tests.transitions.recurring import half_a_year_away, jobs_of, make_recurring, recurring
from tests.transitions.rows import Sql, ago, ahead, execute, select
from workers.instants import LOCKED
from workers.recurring import Declared, Recurring

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "engine"]),
    pytest.mark.usefixtures("clean_tables"),
]


@pytest.fixture(autouse=True)
def types(clean_tables):
    with registered(), translation.override("en"):
        yield


def test_it_sleeps_until_the_next_one_is_due_and_no_longer_than_the_scheduler():
    with overridden(scheduler={"interval": 300.0}):
        routine = Recurring()
        assert routine.interval() == 300.0
        make_recurring(next_run_at=ahead(3000))
        assert routine.interval() == 300.0
        id_ = make_recurring(next_run_at=ahead(200))
        assert 0 < routine.interval() <= 200
        execute("UPDATE turno.recurring_jobs SET next_run_at = now() WHERE id = %s", id_)
        assert routine.interval() == 0.0
        assert routine.run_once() == 1
        assert routine.interval() > LOCKED


def test_a_full_batch_says_so_and_the_rest_follows():
    with overridden(scheduler={"batch_size": 2}):
        ids = [make_recurring() for _ in range(3)]
        routine = Recurring()
        assert [routine.run_once() for _ in range(3)] == [2, 1, 0]
    assert all(jobs_of(id_) for id_ in ids)


def test_what_can_not_even_be_marked_is_passed_over_and_holds_up_no_other(caplog):
    bad = make_recurring(next_run_at=ago(30), timezone="Mars/Olympus")
    good = [make_recurring() for _ in range(3)]
    execute(f"ALTER TABLE turno.recurring_jobs ADD CONSTRAINT no_error CHECK (error IS NULL OR id <> '{bad}')")
    try:
        routine = Recurring()
        assert routine.run_once() == 3
        assert all(jobs_of(id_) for id_ in good)
        assert routine.interval() > LOCKED
        assert [routine.run_once() for _ in range(20)] == [0] * 20
    finally:
        execute("ALTER TABLE turno.recurring_jobs DROP CONSTRAINT no_error")
    assert [record.getMessage() for record in caplog.records].count("recurring.refused") == 1
    assert recurring(bad)["error"] is None


def test_one_that_somebody_enabled_by_sql_is_found_after_a_while(monkeypatch):
    lost = [make_recurring(next_run_at=None, cron=cron) for cron in (half_a_year_away(), "x y")]
    lost.append(make_recurring(next_run_at=Sql("'infinity'::timestamptz")))
    off, seen = make_recurring(next_run_at=None, enabled=False), recurring(lost[0])["updated_at"]
    routine = Recurring()
    routine.run_once()
    assert recurring(lost[0])["next_run_at"] is None
    monkeypatch.setattr(routine, "_again", 0)
    routine.run_once()
    found = [recurring(id_) for id_ in lost]
    assert [row["next_run_at"] is not None for row in found] == [True, False, True]
    assert "cron:" in found[1]["error"]
    assert found[0]["updated_at"] == seen  # nobody has edited it
    assert recurring(off)["next_run_at"] is None
    assert [len(jobs_of(id_)) for id_ in lost] == [0, 0, 0]


def test_one_that_can_not_fire_is_told_once(caplog):
    make_recurring(cron="x y", name="bad-one")
    routine = Recurring()
    assert [routine.run_once() for _ in range(5)] == [1, 0, 0, 0, 0]
    said = [record for record in caplog.records if record.getMessage() == "recurring.error"]
    assert [record.recurring for record in said] == ["bad-one"]


def test_the_declared_ones_are_brought_up_to_date_once_and_what_is_wrong_is_the_workers_to_say():
    declared = Declared()
    assert declared.problems() == []
    entries = {"good": {"type": "test.any", "cron": "@daily"}, "bad": {"type": "test.any", "cron": "x"}}
    with overridden(recurring_jobs=entries, samples={"enabled": False}):
        declared.run_once()
        [problem] = declared.problems()
        assert problem["part"] == "recurring_jobs"
        assert problem["error"].startswith("Recurring job bad: cron: ")
        [row] = select("SELECT name FROM turno.recurring_jobs")
        execute("DELETE FROM turno.recurring_jobs")
        declared.run_once()
    assert row["name"] == "good"
    assert select("SELECT name FROM turno.recurring_jobs") == []
