"""turno.testing: the database's clock stands still, and is moved."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models.functions import Now
from django.test import TestCase

from jobs.models import Job, JobAttempt
from turno.handlers import Snooze, job_type
from turno.jobs import enqueue
from turno.testing import adrain, assert_enqueued, drain, frozen_time, refute_enqueued, temporary_types

pytestmark = pytest.mark.django_db
START = datetime(2020, 2, 29, 23, 59, tzinfo=UTC)


def asked(sql="SELECT now(), statement_timestamp(), clock_timestamp(), transaction_timestamp(), CURRENT_TIMESTAMP"):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()


@pytest.fixture(autouse=True)
def tick(types):
    @job_type("clock.tick", max_attempts=3, backoff_base=10)
    def tick(ctx, payload):
        if payload.get("fail", 0) >= ctx.attempt:
            raise ValueError("not yet")
        if ctx.execution == 1 and "snooze" in payload:
            return Snooze(payload["snooze"])
        return payload.get("name")

    return tick


def test_whatever_asks_the_database_for_the_instant_is_given_the_clocks():
    with frozen_time(START) as clock:
        assert asked() == (START,) * 5
        assert clock.advance(60) == clock.now == START + timedelta(minutes=1)
        assert set(asked()) == {clock.now}
        get_user_model().objects.create(username="ana", date_joined=Now())
        assert get_user_model().objects.get(username="ana").date_joined == clock.now
    assert min(asked()) > datetime(2026, 1, 1, tzinfo=UTC)


def test_values_and_names_that_look_like_the_question_stay():
    with frozen_time(START), connection.cursor() as cursor:
        cursor.execute("SELECT %s, 1 AS snow, pg_catalog.now() > '2026-01-01'", ["now() CURRENT_TIMESTAMP"])
        assert cursor.fetchone() == ("now() CURRENT_TIMESTAMP", 1, True)
        cursor.execute("""/* it's */ SELECT 'it''s now() then' AS "now()", -- isn't it
            now() AS then""")
        assert ([column.name for column in cursor.description], cursor.fetchone()) == (
            ["now()", "then"], ("it's now() then", START),
        )  # fmt: skip
        cursor.executemany("SELECT %s", [["now()"]])


def test_without_an_instant_time_stands_still_from_now():
    with frozen_time() as clock:
        first = asked()
        assert set(first) == {clock.now}
        assert asked() == first


def test_time_passes_by_seconds_by_a_length_by_parts_or_to_an_instant():
    with frozen_time("2020-02-29T23:59:00Z") as clock:
        clock.advance(30.5)
        clock.advance(timedelta(seconds=29.5))
        assert clock.now == datetime(2020, 3, 1, tzinfo=UTC)
        clock.advance(hours=1, minutes=30)
        assert clock.now == datetime(2020, 3, 1, 1, 30, tzinfo=UTC)
        clock.move_to("2020-03-01T00:00:00-03:00")
        assert clock.now == datetime(2020, 3, 1, 3, tzinfo=UTC)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="with its offset from UTC"):
        frozen_time("2020-01-01T00:00:00")
    with pytest.raises(TypeError, match="instant: expected a datetime or its ISO 8601 text, got int"):
        frozen_time(7)
    with frozen_time(START) as clock:
        with pytest.raises(ValueError, match=r"instant: expected none before 2020-02-29T23:59:00\+00:00"):
            clock.move_to(START - timedelta(seconds=1))
        with pytest.raises(ValueError, match="no less than zero"):
            clock.advance(-1)
        with pytest.raises(ValueError, match="no less than zero"):
            clock.advance(hours=-1)
        with pytest.raises(RuntimeError, match="stands still already"), frozen_time():
            pass
        assert clock.now == START


def test_a_delay_is_counted_by_the_clock_and_runs_at_its_instant(tick):
    with frozen_time(START) as clock:
        job = enqueue("clock.tick", {"name": "later"}, delay=3600)
        assert_enqueued(tick, delay=3600, run_at=START + timedelta(hours=1))
        clock.advance(minutes=59, seconds=59.999999)
        assert not drain()
        clock.advance(0.000001)
        [run] = drain()
        assert (run.at, run.result) == (START + timedelta(hours=1), "later")
    row = Job.objects.get(id=job.id)
    assert (row.created_at, row.finished_at) == (START, clock.now)
    attempt = JobAttempt.objects.get(job=row)
    assert (attempt.started_at, attempt.ended_at) == (clock.now, clock.now)


def test_retries_come_at_the_instants_that_the_backoff_gives():
    with frozen_time(START) as clock:
        enqueue("clock.tick", {"fail": 2})
        for wait in (10, 20):
            [run] = drain(with_failures="record").retried
            assert wait * 0.8 <= run.delay <= wait * 1.2
            assert not drain()
            clock.advance(run.delay)
        assert drain().results == [None]


def test_drain_lets_time_pass_and_runs_each_at_its_own_instant():
    with frozen_time(START) as clock:
        enqueue("clock.tick", {"name": "third"}, delay=120)
        enqueue("clock.tick", {"name": "second", "snooze": 90})
        enqueue("clock.tick", {"name": "fourth"}, delay=121)
        drained = drain(with_scheduled=120)
        assert drained.results == ["second", "third"]
        assert [(run.at - START).total_seconds() for run in drained] == [0, 90, 120]
        assert clock.now == START + timedelta(seconds=120)
        assert drain(with_scheduled=timedelta(0)).runs == []
        assert drain(with_scheduled=START + timedelta(hours=1)).results == ["fourth"]
        assert clock.now == START + timedelta(hours=1)


def test_drain_goes_on_for_as_long_as_something_waits_for_an_instant():
    enqueue("clock.tick", {"fail": 3})
    enqueue("clock.tick", {"name": "in a year"}, delay=366 * 86_400)
    drained = drain(with_scheduled=True, with_failures="record")
    assert [str(run.state) for run in drained] == ["Scheduled", "Scheduled", "Failed", "Succeeded"]
    assert [run.attempt for run in drained.runs[:3]] == [1, 2, 3]
    assert drained.runs[3].at - drained.runs[0].at > timedelta(days=365)
    refute_enqueued()
    assert max(asked()) < drained.runs[3].at, "outside of the drain the clock is the real one"


def test_without_a_frozen_clock_what_became_due_within_the_transaction_runs():
    asked()  # the transaction has begun, and now() with it
    enqueue("clock.tick", delay=0.001)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.002)")
    assert len(drain()) == 1


class InAsyncTests(TestCase):
    async def test_the_clock_holds_where_the_database_is_asked(self):
        from asgiref.sync import sync_to_async

        with temporary_types():

            @job_type("clock.async")
            async def later(ctx):
                return (await sync_to_async(asked)())[0]

            async with frozen_time(START) as clock:
                await sync_to_async(enqueue)("clock.async", delay=60)
                assert (await adrain()).runs == []
                drained = await adrain(with_scheduled=60)
                assert drained.results == ["2020-03-01T00:00:00+00:00"]
                assert clock.now == START + timedelta(seconds=60)
        assert (await sync_to_async(asked)())[0] != clock.now
