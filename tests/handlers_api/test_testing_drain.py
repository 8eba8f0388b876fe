"""turno.testing: what waits is run here and now, and all that a worker writes is true."""

import os
import threading
from datetime import datetime

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from jobs.conf import overridden
from jobs.errors import UnknownType
from jobs.models import Job, JobAttempt, JobLog, JobStateChange, Pause
from tests.handlers_api.drained import declare, run_one
from turno.handlers import Snooze
from turno.jobs import enqueue
from turno.testing import DrainLimit, adrain, drain

pytestmark = pytest.mark.django_db


def test_a_run_is_told_and_written():
    def work(ctx, payload):
        ctx.report_progress(40, "Reading")
        ctx.stage("Writing")
        ctx.log("half way", "warning")
        (ctx.folder / "sub").mkdir()
        (ctx.folder / "sub" / "page.txt").write_text("text")
        return {"n": payload["n"], "rows": (1, 2)}

    run = run_one(work, {"n": 7}, queue="reports")
    assert (run.type, run.queue, run.payload, run.attempt, run.execution) == ("drain.one", "reports", {"n": 7}, 1, 1)
    assert (run.state, run.outcome, run.error, run.delay) == ("Succeeded", "Succeeded", None, None)
    assert (run.result, run.progress, run.stages) == ({"n": 7, "rows": [1, 2]}, 40, ["Reading", "Writing"])
    assert (run.logs, run.files) == ([("warning", "half way")], {"sub/page.txt": b"text"})
    job = Job.objects.get(id=run.job_id)
    assert (job.state, job.result, job.progress, job.stage) == ("Succeeded", run.result, 100, "Writing")
    attempt = JobAttempt.objects.get(job=job)
    assert (attempt.outcome, attempt.worker_name, attempt.worker_pid) == ("Succeeded", "turno.testing", os.getpid())
    assert list(JobLog.objects.filter(job=job).values_list("level", "message")) == [("warning", "half way")]
    changes = JobStateChange.objects.filter(job=job).order_by("id").values_list("to_state", "reason")
    assert list(changes) == [("Enqueued", "created"), ("Processing", "claimed"), ("Succeeded", "succeeded")]


@pytest.mark.parametrize("options", [{}, {"isolation": "thread"}, {"fresh": True}])
def test_a_plain_handler_runs_in_this_very_thread_and_transaction(options):
    here = (os.getpid(), threading.get_ident())
    run = run_one(lambda ctx: [os.getpid(), threading.get_ident(), Job.objects.count()], **options)
    assert run.result == [*here, 1]


def test_an_async_handler_asks_the_database_within_this_transaction():
    async def work(ctx):
        await ctx.asleep(0)
        return [await Job.objects.acount(), await sync_to_async(threading.get_ident)()]

    assert run_one(work).result == [1, threading.get_ident()]


def test_jobs_that_jobs_enqueue_run_too_by_priority_and_age():
    def work(ctx, payload):
        for name, priority in payload.get("then", {}).items():
            enqueue("drain.tree", {"name": name}, priority=priority, queue=name)
        return payload["name"]

    declare("drain.tree", work)
    enqueue("drain.tree", {"name": "a", "then": {"c": 0, "d": 5}})
    enqueue("drain.tree", {"name": "b"})
    assert drain().results == ["a", "d", "b", "c"]
    assert not drain()


def test_only_the_queues_that_are_named_are_drained():
    declare("drain.any", lambda ctx, payload: payload["n"])
    for number, queue in enumerate(["a", "b", "c"]):
        enqueue("drain.any", {"n": number}, queue=queue)
    enqueue("drain.any", {"n": 3}, queue="a", delay=60)
    assert drain("a").results == [0]
    assert drain(["c", "a"], with_scheduled=True).results == [2, 3]
    assert drain().results == [1]


def test_a_paused_queue_stays_and_the_others_go_on():
    declare("drain.any", lambda ctx, payload: payload["n"])
    Pause.objects.create(scope="queue", value="a")
    enqueue("drain.any", {"n": 1}, queue="a", priority=9)
    enqueue("drain.any", {"n": 2}, queue="b")
    assert drain().results == [2]
    Pause.objects.all().delete()
    assert drain().results == [1]


def test_a_type_without_a_handler_here_stays():
    with overridden(api={"unknown_types": "accept"}):
        enqueue("drain.elsewhere")
        enqueue("drain.elsewhere", delay=60)
    assert not drain(with_scheduled=True)
    assert Job.objects.count() == 2


@pytest.mark.parametrize("endless", ["enqueues", "snoozes"])
def test_what_never_ends_is_stopped_with_what_ran(endless):
    def work(ctx):
        if endless == "snoozes":
            return Snooze(1)
        return str(enqueue("drain.endless").id)

    enqueue(declare("drain.endless", work))
    with pytest.raises(DrainLimit, match=r"drain\(\) ran 7 executions, its limit.*drain\.endless × 7") as failure:
        drain(with_scheduled=True, limit=7)
    assert len(failure.value.drained) == 7


def test_the_limit_is_no_error_when_nothing_is_left():
    declare("drain.any", lambda ctx: None)
    for _ in range(3):
        enqueue("drain.any")
    assert len(drain(limit=3)) == 3


def test_the_runs_of_one_type_can_be_looked_at_alone():
    declare("drain.any", lambda ctx: "any")
    declare("drain.other", lambda ctx: "other")
    enqueue("drain.any")
    enqueue("drain.other")
    drained = drain()
    assert drained.of("drain.other").results == ["other"]
    assert (bool(drained), str(drain())) == (True, "nothing ran")
    with pytest.raises(UnknownType):
        drained.of("drain.othre")


@pytest.mark.parametrize(
    ("asked", "kind", "text"),
    [
        ({"with_failures": "ignore"}, ValueError, 'with_failures: expected "raise" or "record", got \'ignore\''),
        ({"limit": 0}, ValueError, "limit: expected a whole number from 1, got 0"),
        ({"limit": True}, ValueError, "limit: expected a whole number from 1"),
        ({"with_scheduled": -1}, ValueError, "with_scheduled: expected no less than zero"),
        ({"with_scheduled": []}, TypeError, "with_scheduled: expected seconds or a timedelta"),
        ({"with_scheduled": datetime(2099, 1, 1)}, ValueError, "with its offset from UTC"),  # noqa: DTZ001  (the fault)
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(asked, kind, text):
    with pytest.raises(kind, match=text):
        drain(**asked)


async def test_inside_an_event_loop_the_other_one_is_named():
    with pytest.raises(RuntimeError, match=r"write await adrain\(\.\.\.\)"):
        drain()


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_around_it_is_the_same(clean_tables):
    async def work(ctx):
        return await Job.objects.acount()

    job = enqueue(declare("drain.committed", work))
    enqueue(declare("drain.atomic", lambda ctx: transaction.get_connection().in_atomic_block))
    assert drain().results == [2, False]
    assert Job.objects.get(id=job.id).state == "Succeeded"


@pytest.mark.django_db(transaction=True)
async def test_async_tests_await_it(clean_tables):
    async def work(ctx):
        return await Job.objects.acount()

    declare("drain.async", work)
    declare("drain.plain", lambda ctx: Job.objects.count())
    await sync_to_async(enqueue)("drain.async")
    await sync_to_async(enqueue)("drain.plain")
    assert (await adrain()).results == [2, 2]
    await sync_to_async(connections.close_all)()  # of the thread that lives on
