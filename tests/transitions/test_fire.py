"""Recurring jobs that are due become jobs: what they get, what moves on, and what is wrong with one stops no other."""

import errno
from datetime import UTC, datetime, timedelta

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from jobs import schedules
from jobs.conf import overridden
from jobs.transitions import claim_next, next_firing
from jobs.transitions.fire import DUE, NEXT
from tests.database.explain import indexes_used, plan_of
from tests.jobs.enqueue_types import registered
from tests.transitions.edges import claimant
from tests.transitions.recurring import (
    EVERY_MINUTE,
    fire_all,
    instants,
    jobs_of,
    make_many,
    make_recurring,
    recurring,
)
from tests.transitions.rows import Sql, ago, ahead, execute, history, select
from turno.testing import frozen_time

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday


@pytest.fixture(autouse=True)
def types():
    with registered(), translation.override("en"):
        yield


def test_a_due_one_becomes_a_job_of_its_instant_with_what_it_says():
    with frozen_time(NOON):
        id_ = make_recurring(
            type="test.report", payload={"rows": 5}, queue="critical", priority=3, owner="user:ana", name="daily",
            next_run_at=NOON, cron="0 12 * * *",
        )  # fmt: skip
        assert schedules.fire_due() == 1
    [job], row = jobs_of(id_), recurring(id_)
    assert (job["type"], job["payload"], job["queue"], job["priority"]) == ("test.report", {"rows": 5}, "critical", 3)
    assert (job["owner"], job["origin"], job["fired_for"], job["state"]) == ("user:ana", "daily", NOON, "Enqueued")
    assert [change["reason"] for change in history(job["id"])] == ["created"]
    assert row["next_run_at"] == NOON + timedelta(days=1)
    assert (row["last_run_at"], row["last_job_id"], row["version"]) == (NOON, job["id"], 1)
    assert (row["skipped"], row["error"]) == (0, None)


def test_without_words_of_its_own_a_job_is_as_its_type_declares():
    id_ = make_recurring(type="test.urgent")
    schedules.fire_due()
    [job] = jobs_of(id_)
    assert (job["queue"], job["priority"], job["max_attempts"], job["timeout"]) == ("critical", 7, 3, 9)
    [claim] = claim_next([("critical", 1)], types=["test.urgent"], **claimant())
    assert claim.id == job["id"]


@pytest.mark.parametrize("columns", [{"enabled": False}, {"next_run_at": None}, {"next_run_at": ahead(60)}])
def test_what_is_disabled_has_no_instant_or_is_not_due_is_left(columns):
    id_ = make_recurring(**columns)
    assert schedules.fire_due() == 0
    assert jobs_of(id_) == []
    assert recurring(id_)["version"] == 0


def test_a_batch_takes_the_longest_due_and_says_how_many():
    late = [make_recurring(next_run_at=ago(50 - n)) for n in range(3)]
    later = make_recurring(next_run_at=ago(1))
    assert schedules.fire_due(limit=3) == 3
    assert all(jobs_of(id_) for id_ in late)
    assert jobs_of(later) == []
    assert schedules.fire_due(limit=3) == 1


def test_an_instant_that_has_a_job_already_only_moves_on():
    with frozen_time(NOON):
        id_ = make_recurring(next_run_at=NOON, cron=EVERY_MINUTE)
        schedules.fire_due()
        [first] = jobs_of(id_)
        execute("UPDATE turno.recurring_jobs SET next_run_at = %s, overlap = 'allow'", NOON)
        assert schedules.fire_due() == 1
    assert [job["id"] for job in jobs_of(id_)] == [first["id"]]
    assert recurring(id_)["next_run_at"] == NOON + timedelta(minutes=1)


BAD = {
    "zone": ({"timezone": "Mars/Olympus"}, "timezone:"),
    "offset as a zone": ({"timezone": "+05:30"}, "timezone:"),
    "cron": ({"cron": "x y"}, "cron:"),
    "a cron that never comes": ({"cron": "0 0 30 2 *"}, "cron:"),
    "an unknown type": ({"type": "nobody.knows"}, "type: There is no such job type."),
    "a payload that its type refuses": ({"type": "test.report", "payload": {"rows": 0}}, "payload.rows:"),
    "a payload that is no object": ({"payload": [1]}, "payload:"),
    "a payload too deep": ({"payload": Sql(f"'{'[' * 100}{']' * 100}'::jsonb")}, "payload"),
    "a payload that no parser reads": (
        {"payload": Sql(f"'{'[' * 2000}{']' * 2000}'::jsonb")},
        "payload: Expected JSON.",
    ),
    "a number that no double holds": ({"payload": Sql("('{\"a\": 1' || repeat('0', 400) || '}')::jsonb")}, ""),
}


@pytest.mark.parametrize("how", BAD)
def test_one_that_can_not_fire_is_marked_and_left_alone_and_stops_no_other(how):
    columns, said = BAD[how]
    bad, good = make_recurring(next_run_at=ago(30), **columns), make_recurring()
    assert fire_all() == 2
    row = recurring(bad)
    assert said in row["error"]
    assert (row["next_run_at"], row["enabled"], jobs_of(bad)) == (None, True, [])
    assert len(jobs_of(good)) == 1
    assert schedules.fire_due() == 0  # nobody looks at it again


@pytest.mark.parametrize("at", ["'-infinity'", "'0044-03-15 BC'", "'1931-01-01'"])
def test_an_instant_before_any_calendar_of_ours_is_an_outage_like_another(at):
    with frozen_time(NOON):
        id_ = make_recurring(next_run_at=Sql(f"{at}::timestamptz"), cron=EVERY_MINUTE)
        other = make_recurring()
        assert fire_all() == 2
    assert len(jobs_of(id_)) == len(jobs_of(other)) == 1
    assert recurring(id_)["skipped"] > 1_000_000


def test_an_instant_behind_every_calendar_keeps_nobody_from_firing():
    make_recurring(next_run_at=Sql("'infinity'::timestamptz"))
    make_recurring(next_run_at=Sql("'200000-01-01'::timestamptz"))
    assert next_firing() is None
    with frozen_time(NOON):
        id_ = make_recurring(cron=EVERY_MINUTE)
        assert next_firing() == 0
        assert schedules.fire_due() == 1
        assert len(jobs_of(id_)) == 1
        assert next_firing() == 60


@pytest.mark.parametrize("how", ["enabled", "edited"])
def test_an_instant_behind_every_calendar_is_mended_by_whoever_enables_or_edits(how):
    with frozen_time(NOON):
        id_ = make_recurring(next_run_at=Sql("'infinity'::timestamptz"), name="never", cron=EVERY_MINUTE)
        if how == "enabled":
            schedules.enable(id_, actor="ana")
        else:
            schedules.put(schedules.Wanted("never", "test.any", EVERY_MINUTE), actor="ana")
        assert next_firing() == 60


def test_a_job_that_the_database_refuses_is_an_error_of_its_own(monkeypatch):
    bad, good = make_recurring(next_run_at=ago(30)), make_recurring()
    made, name = schedules.firing.job_of, recurring(bad)["name"]

    def job_of(*arguments, origin, **options):
        return made(*arguments, origin=origin, **options)._replace(origin="a\0b" if origin == name else origin)

    monkeypatch.setattr(schedules.firing, "job_of", job_of)
    assert fire_all() == 2
    assert "The database refused its job" in recurring(bad)["error"]
    assert recurring(bad)["next_run_at"] is None
    assert len(jobs_of(good)) == 1


def test_what_breaks_while_a_row_is_worked_out_is_that_rows(monkeypatch):
    bad, good = make_recurring(cron="1 1 1 1 1"), make_recurring()
    parse = schedules.firing.parse

    def broken(cron, timezone):
        if cron == "1 1 1 1 1":
            raise RuntimeError("no\nwords")
        return parse(cron, timezone)

    monkeypatch.setattr(schedules.firing, "parse", broken)
    assert fire_all() == 2
    assert recurring(bad)["error"] == "RuntimeError: no words"
    assert len(jobs_of(good)) == 1


@pytest.mark.parametrize("fault", [OperationalError("terminating connection"), InterfaceError("connection is closed")])
def test_a_database_that_goes_away_while_a_row_is_worked_out_marks_nothing(monkeypatch, fault):
    id_ = make_recurring(type="somewhere.else")
    execute("INSERT INTO turno.job_types (name, last_served_at) VALUES ('somewhere.else', now())")
    with monkeypatch.context() as away:
        away.setattr(schedules.firing.transitions, "served_types", lambda *_names, **_how: raises(fault))
        with pytest.raises(type(fault)):
            schedules.fire_due()
    assert recurring(id_)["error"] is None
    assert schedules.fire_due() == 1
    assert len(jobs_of(id_)) == 1


@pytest.mark.parametrize("fault", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
def test_what_this_machine_has_no_room_for_is_passed_over_for_now_and_marks_nothing(monkeypatch, fault):
    id_, other = make_recurring(cron="1 1 1 1 1", next_run_at=ago(30)), make_recurring()
    parse, aside = schedules.firing.parse, set()
    with monkeypatch.context() as full:
        full.setattr(
            schedules.firing, "parse", lambda cron, zone: raises(fault) if cron[0] == "1" else parse(cron, zone)
        )
        assert schedules.fire_due(without=aside) == 1
    assert (aside, recurring(id_)["error"], len(jobs_of(other))) == ({id_}, None, 1)
    assert schedules.fire_due() == 1
    assert len(jobs_of(id_)) == 1


def raises(fault):
    raise fault


def test_who_else_has_a_type_is_asked_once_for_a_batch():
    make_many(20, type="'somewhere.else'")
    execute("INSERT INTO turno.job_types (name, last_served_at) VALUES ('somewhere.else', now())")
    with CaptureQueriesContext(connection) as asked:
        assert schedules.fire_due() == 20
    assert len([query for query in asked if "last_served_at >" in query["sql"]]) == 1


def test_a_type_that_only_another_worker_has_is_fired_unchecked():
    id_ = make_recurring(type="somewhere.else", payload={"any": 1})
    execute("INSERT INTO turno.job_types (name, last_served_at) VALUES ('somewhere.else', now() - interval '1 minute')")
    schedules.fire_due()
    [job] = jobs_of(id_)
    assert (job["payload"], recurring(id_)["error"]) == ({"any": 1}, None)


def test_a_type_that_nobody_has_had_for_long_is_an_error():
    id_ = make_recurring(type="gone.away")
    execute("INSERT INTO turno.job_types (name, last_served_at) VALUES ('gone.away', now() - interval '2 hours')")
    schedules.fire_due()
    assert "type:" in recurring(id_)["error"]


def test_where_unknown_types_are_accepted_one_fires():
    id_ = make_recurring(type="nobody.knows")
    with overridden(api={"unknown_types": "accept"}):
        schedules.fire_due()
    assert len(jobs_of(id_)) == 1


def test_what_was_read_long_ago_counts_no_more():
    id_ = make_recurring()
    [due] = schedules.firing.transitions.due(limit=1)
    stale = due._replace(now=due.now - timedelta(seconds=61))
    firing = schedules.firing._Work(schedules.firing.conf(), "default").firing(stale)
    assert schedules.firing.transitions.fire([firing], fresh=60) == {}
    assert jobs_of(id_) == []
    assert schedules.fire_due() == 1


def test_the_seconds_until_the_next_one_are_the_databases():
    assert next_firing() is None
    make_recurring(next_run_at=ahead(90), enabled=False)
    make_recurring(next_run_at=ahead(30))
    make_recurring(next_run_at=ahead(10))
    assert 9 < next_firing() <= 10


def test_of_five_thousand_a_loop_of_batches_fires_all_and_each_once():
    make_many(5000)
    assert fire_all() == 5000
    [counts] = select("SELECT count(*) AS jobs, count(DISTINCT recurring_job_id) AS of FROM turno.jobs")
    assert counts == {"jobs": 5000, "of": 5000}
    [left] = select("SELECT count(*) AS due FROM turno.recurring_jobs WHERE next_run_at <= now() OR version <> 1")
    assert left["due"] == 0


@pytest.mark.parametrize(
    ("sql", "params"), [(DUE, {"limit": 200, "without": []}), (NEXT, {"without": []})], ids=["due", "next"]
)
def test_what_is_due_is_found_by_its_index(sql, params):
    make_many(5000, next_run_at="now() + n * interval '1 minute'")
    execute("ANALYZE turno.recurring_jobs")
    assert indexes_used(plan_of(sql, params)) == {"recurring_due_order"}


def test_instants_are_whole_seconds_of_the_schedule():
    with frozen_time(NOON) as clock:
        id_ = make_recurring(cron="*/15 * * * * *", next_run_at=NOON, overlap="allow")
        for _quarter in range(4):
            schedules.fire_due()
            clock.advance(15)
    assert instants(id_) == [NOON + timedelta(seconds=15 * n) for n in range(4)]
    assert connection.in_atomic_block
