"""turno.testing: what runs inside the test's own transaction leaves that usable, and sees its own commit."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import (
    DatabaseError,
    IntegrityError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.test import TestCase

from turno.handlers import job_type
from turno.jobs import enqueue
from turno.testing import assert_enqueued, drain, run_job, temporary_types

pytestmark = pytest.mark.django_db


def twice():
    Group.objects.create(name="one")
    Group.objects.create(name="one")


def bare():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1/0")


async def async_twice():
    await Group.objects.acreate(name="one")
    await Group.objects.acreate(name="one")


@pytest.mark.parametrize(("work", "error"), [(twice, IntegrityError), (bare, DatabaseError)])
def test_a_statement_that_fails_leaves_the_tests_transaction_usable(work, error):
    job_type("tx.failing")(lambda ctx: work())
    enqueue("tx.failing")
    [run] = drain(with_failures="record").retried
    assert isinstance(run.error, error)
    assert Group.objects.count() == 0


def test_of_an_async_handler_too():
    @job_type("tx.async")
    async def failing(ctx):
        await async_twice()

    enqueue("tx.async")
    assert isinstance(drain(with_failures="record").retried[0].error, IntegrityError)
    assert Group.objects.count() == 0


def test_what_a_handler_wrote_before_it_failed_stays_as_in_a_worker():
    @job_type("tx.half")
    def half(ctx):
        Group.objects.create(name="kept")
        with pytest.raises(IntegrityError), transaction.atomic():
            twice()
        raise ValueError("after all")

    enqueue("tx.half")
    assert len(drain(with_failures="record").retried) == 1
    assert list(Group.objects.values_list("name", flat=True)) == ["kept"]


def test_what_a_handler_registers_for_its_commit_is_called():
    called = []

    @job_type("tx.hooks")
    def hooks(ctx, payload):
        with transaction.atomic():
            transaction.on_commit(lambda: called.append(payload["n"]))
            transaction.on_commit(lambda: 1 / 0, robust=True)
            if payload["n"]:
                transaction.on_commit(lambda: enqueue("tx.hooks", {"n": payload["n"] - 1}))
        with pytest.raises(ValueError), transaction.atomic():  # noqa: PT011, PT012  (only that it is undone matters)
            transaction.on_commit(lambda: called.append("undone"))
            raise ValueError

    transaction.on_commit(lambda: called.append("the test's own"))
    enqueue("tx.hooks", {"n": 2})
    assert len(drain()) == 3
    assert called == [2, 1, 0]
    assert len(connection.run_on_commit) == 1


def test_a_hook_that_fails_fails_its_attempt_as_in_a_worker():
    @job_type("tx.hook")
    def hook(ctx):
        transaction.on_commit(lambda: 1 / 0)

    enqueue("tx.hook")
    assert isinstance(drain(with_failures="record").retried[0].error, ZeroDivisionError)
    assert connection.run_on_commit == []


def close_one():
    connection.close()


@pytest.mark.parametrize("close", [close_one, connections.close_all, close_old_connections])
def test_a_handler_that_closes_its_connections_does_not_close_the_tests(close):
    def work(ctx):
        Group.objects.create(name="one")
        close()
        return Group.objects.count()

    job_type("tx.closing")(work)
    enqueue("tx.closing")
    assert drain().results == [1]
    assert Group.objects.count() == 1
    assert "close" not in vars(connections["default"])


def out_of_time():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '1ms'")
        cursor.execute("SELECT pg_sleep(10)")


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_transient_error_of_the_database_is_tried_again_with_a_connection_that_works(kind):
    tries = []

    def work(ctx):
        tries.append(ctx.attempt)
        if len(tries) == 1:
            out_of_time()
        return Group.objects.count()

    async def async_work(ctx):
        return await sync_to_async(work)(ctx)

    job_type("tx.transient")(work if kind == "plain" else async_work)
    enqueue("tx.transient")
    assert drain().results == [0]
    assert tries == [1, 1]


class InTestCases(TestCase):
    def test_it_works_in_a_test_case_and_in_atomic_blocks_of_it(self):
        with temporary_types():

            @job_type("tx.greet")
            def greet(ctx, payload):
                Group.objects.create(name=payload["name"])

            with transaction.atomic():
                enqueue("tx.greet", {"name": "ana"})
                assert_enqueued(greet, payload={"name": "ana"})
                assert len(drain()) == 1
            with transaction.atomic():
                enqueue("tx.greet", {"name": "eva"})
                assert len(drain()) == 1
                transaction.set_rollback(True)
            assert [group.name for group in Group.objects.all()] == ["ana"]
            assert drain().runs == []


def test_run_job_sees_what_the_test_has_written():
    Group.objects.create(name="one")

    @job_type("tx.plain")
    def plain(ctx):
        return Group.objects.count()

    @job_type("tx.counting")
    async def counting(ctx):
        return await Group.objects.acount()

    assert (run_job(plain).result, run_job(counting).result) == (1, 1)
