"""turno.testing: wrong use is told at once and in one sentence, and nothing of a test is left to the next."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.core import mail
from django.db import connection
from django.test import TestCase, TransactionTestCase
from pydantic import BaseModel

from jobs.errors import Invalid, PayloadTooLarge, UnknownType
from jobs.models import Job, Pause
from tests.handlers_api.drained import declare
from tests.races.two import lock, rival
from turno.jobs import enqueue
from turno.testing import (
    DrainLimit,
    assert_enqueued,
    clear_jobs,
    drain,
    enqueued,
    frozen_time,
    run_job,
    temporary_types,
)

START = "2020-02-29T23:59:00Z"
needs_rows = pytest.mark.django_db


class Rows(BaseModel):
    rows: int = 1
    day: date | None = None


def take(ctx, payload: Rows):
    return payload.rows


@pytest.mark.parametrize(
    ("payload", "kind", "text"),
    [
        ({"rows": "many"}, Invalid, "payload.rows: "),
        ({"rows": 1, "rowz": 2}, Invalid, "payload.rowz: "),
        ({"rows": {1, 2}}, Invalid, "payload.rows: set"),
        ([1], Invalid, "payload: "),
        ("text", Invalid, "payload: "),
        ({"rows": 1, "day": "x" * 300_000}, PayloadTooLarge, "payload: "),
    ],
)
def test_a_payload_that_no_job_could_have_is_refused_by_field(types, payload, kind, text):
    with pytest.raises(kind, match=rf"^{re.escape(text)}"):
        run_job(declare("wrong.rows", take), payload)


def test_a_model_is_a_payload_and_goes_through_json(types):
    assert run_job(declare("wrong.rows", take), Rows(rows=3, day=date(2020, 1, 1))).result == 3
    assert run_job("wrong.rows").result == 1


@needs_rows
def test_a_payload_that_fits_no_more_says_in_a_drain_which_field_it_is():
    with temporary_types():
        enqueue(declare("wrong.rows", lambda ctx, payload: None), {"rows": "many"})
    declare("wrong.rows", take)
    with pytest.raises(Invalid) as failure:
        drain()
    assert failure.value.__notes__[0].startswith("payload.rows: ")


def test_a_name_that_is_no_types_is_told():
    with pytest.raises(UnknownType) as failure:
        run_job("wrong.nmae")
    assert failure.value.__notes__ == ["asked for: 'wrong.nmae'"]


@needs_rows
@pytest.mark.parametrize("given", [7, take, ["default", 7]], ids=["a number", "a handler", "among names"])
def test_what_is_no_queue_is_refused(given):
    with pytest.raises(TypeError, match=r"^queue: expected the name of a queue, or several, got "):
        drain(given)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: drain(with_scheduled="tomorrow"), "with_scheduled: expected a datetime or its ISO 8601 text"),
        (lambda: drain(with_scheduled=float("nan")), "with_scheduled: expected a number of seconds"),
        (lambda: drain(with_scheduled=float("inf")), "with_scheduled: expected a number of seconds"),
        (lambda: frozen_time("tomorrow"), "instant: expected a datetime or its ISO 8601 text, got 'tomorrow'"),
        (lambda: assert_enqueued(count="1"), "count: expected a whole number from 0, got '1'"),
        (lambda: assert_enqueued(count=-1), "count: expected a whole number from 0"),
        (lambda: assert_enqueued(count=True), "count: expected a whole number from 0"),
    ],
)
def test_what_is_no_time_or_number_is_refused_by_name(act, text, db):
    with pytest.raises(ValueError, match=text):
        act()


@needs_rows
def test_true_is_not_one_and_a_class_is_no_function():
    enqueue(declare("wrong.json", lambda ctx, payload: None), {"flag": 1, "on": False, "ratio": 1.0, "name": "x"})
    assert_enqueued(payload={"flag": 1, "on": False, "ratio": 1})
    assert enqueued(payload={"flag": True}) == enqueued(payload={"on": 0}) == []
    with pytest.raises(TypeError, match=r"^payload\.name: expected a value or a function, got the class str"):
        assert_enqueued(payload={"name": str})


def test_frozen_time_is_no_decorator():
    with pytest.raises(TypeError, match="is no decorator; write `with frozen_time"):
        frozen_time(START)(test_frozen_time_is_no_decorator)


class InAsyncTests(TestCase):
    async def test_frozen_time_wants_async_with_where_it_would_hold_nothing(self):
        held = r"would hold for no database call.*write async with frozen_time"
        with pytest.raises(RuntimeError, match=held), frozen_time(START):
            pass
        async with frozen_time(START) as clock:
            assert clock.now == datetime(2020, 2, 29, 23, 59, tzinfo=UTC)
        assert await sync_to_async(lambda: connection.execute_wrappers)() == []


@needs_rows
def test_the_limit_counts_what_can_run_and_leaves_the_next_one_as_it_was():
    declare("wrong.any", lambda ctx, payload: None)
    Pause.objects.create(scope="queue", value="paused")
    enqueue("wrong.any", queue="paused", priority=9)
    for _ in range(2):
        enqueue("wrong.any")
    assert len(drain(limit=2)) == 2
    for _ in range(3):
        enqueue("wrong.any")
    with pytest.raises(DrainLimit):
        drain(limit=2)
    left = Job.objects.exclude(state="Succeeded").values_list("state", "executions")
    assert list(left) == [("Enqueued", 0)] * 2


@needs_rows
@pytest.mark.parametrize("ahead", [0, timedelta(0), START], ids=["seconds", "a length", "an instant that is past"])
def test_no_time_at_all_may_pass_though_the_real_clock_runs(ahead):
    enqueue(declare("wrong.any", lambda ctx: None), delay=0.001)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.002)")
    assert len(drain(with_scheduled=ahead)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_due_and_locked_elsewhere_is_left(clean_tables, types):
    job = enqueue(declare("wrong.any", lambda ctx: None), delay=60)
    with rival() as other:
        lock(other, job.id)
        assert not drain(with_scheduled=120)
    assert len(drain(with_scheduled=120)) == 1


class Committed(TransactionTestCase):
    """Django's flush leaves the jobs of one test to the next."""

    def setUp(self):
        clear_jobs()
        self.addCleanup(clear_jobs)

    def enqueue_and_fail(self):
        assert enqueued() == []
        with temporary_types():

            def work(ctx):
                ctx.log("a line")
                raise ValueError("no")

            enqueue(declare("wrong.left", work, max_attempts=1))
            drain(with_failures="record")
            enqueue("wrong.left", delay=60)
        assert Job.objects.count() == 2

    def test_one(self):
        self.enqueue_and_fail()

    def test_other(self):
        self.enqueue_and_fail()


def test_jobs_are_cleared_in_tests_alone(monkeypatch):
    monkeypatch.delattr(mail, "outbox")
    with pytest.raises(RuntimeError, match="for Django's test environment alone"):
        clear_jobs()
