"""Rivals with one key, against real PostgreSQL: one row, and no answer but a job or a conflict."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic

import pytest
from django.db import connection, connections, transaction

from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.errors import Conflict, IdempotencyMismatch
from jobs.models import Job
from tests.jobs.enqueue_types import registered

pytestmark = pytest.mark.usefixtures("clean_tables")


@pytest.fixture(autouse=True)
def types(clean_tables):
    with registered():
        yield


def together(count, work):
    """Run `work(number)` in `count` threads that start at once; what each returned or raised."""
    barrier = threading.Barrier(count)

    def run(number):
        try:
            connection.ensure_connection()
            barrier.wait(60)
            return work(number)
        except Exception as error:  # noqa: BLE001  (the test looks at it)
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@contextmanager
def rival(**request):
    """Another transaction that has enqueued and stays open inside; yields its answer and a function that ends it."""
    asked, end, answers = threading.Event(), threading.Event(), []

    def run():
        try:
            with transaction.atomic():
                answers.append(enqueue("test.any", **request))
                asked.set()
                end.wait(30)
                if answers[-1] == "roll back":
                    transaction.set_rollback(True)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    asked.wait(30)

    def finish(commit):
        if not commit:
            answers.append("roll back")
        end.set()
        thread.join(60)

    try:
        yield answers[0], finish
    finally:
        end.set()
        thread.join(60)


def blocked(count, deadline=60.0):
    """Wait until `count` sessions of this database wait for a lock."""
    until = monotonic() + deadline
    while monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                " AND pg_sleep(0.01) IS NOT NULL"
            )
            if cursor.fetchone()[0] >= count:
                return
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_fifty_rivals_with_one_key_make_one_job_and_all_learn_its_id(key):
    answers = together(50, lambda _number: enqueue("test.any", {"a": 1}, **{key: "k"}))
    job = Job.objects.get()
    assert {answer.id for answer in answers} == {job.id}
    assert sum(not answer.duplicate and not answer.replayed for answer in answers) == 1


def test_pairs_of_rivals_with_fresh_keys_always_agree():
    rounds = 100
    barrier = threading.Barrier(2)

    def work(_number):
        ids = []
        for key in range(rounds):
            barrier.wait(60)
            ids.append(enqueue("test.any", {"a": 1}, idempotency_key=str(key)).id)
        return ids

    first, second = together(2, work)
    assert first == second
    assert len(set(first)) == Job.objects.count() == rounds


def test_rivals_with_one_key_and_two_bodies_make_one_job_and_the_others_are_told():
    answers = together(10, lambda number: enqueue("test.any", {"a": number % 2}, idempotency_key="k"))
    refused = [answer for answer in answers if isinstance(answer, IdempotencyMismatch)]
    assert len(refused) == 5
    assert {answer.id for answer in answers if answer not in refused} == {Job.objects.get().id}


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_a_rival_that_rolls_back_leaves_the_key_to_who_waited(key):
    with rival(**{key: "k"}) as (theirs, finish), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(together, 1, lambda _number: enqueue("test.any", **{key: "k"}))
        blocked(1)
        finish(commit=False)
        [mine] = waiting.result(60)
    assert not mine.duplicate
    assert not mine.replayed
    assert mine.id != theirs.id
    assert Job.objects.get().id == mine.id


@pytest.mark.parametrize(("key", "kind"), [("unique_key", "duplicate"), ("idempotency_key", "replayed")])
def test_a_rival_that_commits_answers_who_waited(key, kind):
    with rival(**{key: "k"}) as (theirs, finish), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(together, 1, lambda _number: enqueue("test.any", **{key: "k"}))
        blocked(1)
        finish(commit=True)
        [mine] = waiting.result(60)
    assert mine.id == theirs.id
    assert getattr(mine, kind)


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_a_rival_that_stays_open_is_a_conflict_after_the_limit_and_the_transaction_goes_on(key, monkeypatch):
    monkeypatch.setattr("jobs.transitions.insert.LOCK_TIMEOUT", 0.05)
    with rival(**{key: "k"}) as (theirs, finish):
        with transaction.atomic():
            mine = enqueue("test.any")
            with pytest.raises(Conflict) as caught:
                enqueue_many([JobRequest("test.any"), JobRequest("test.any", **{key: "k"})])
            other = enqueue("test.any")
        assert caught.value.extra["retry_after"] == 1
        assert caught.value.status == 409
        finish(commit=True)
    assert set(Job.objects.values_list("id", flat=True)) == {mine.id, other.id, theirs.id}


def test_batches_with_the_same_keys_in_opposite_orders_never_deadlock():
    rounds, size = 15, 40
    barrier = threading.Barrier(2)

    def work(number):
        for turn in range(rounds):
            keys = [f"{turn}-{n:02}" for n in range(size)]
            barrier.wait(60)
            with transaction.atomic():  # where nothing repeats a deadlock's victim
                enqueue_many([JobRequest("test.any", unique_key=key) for key in (keys if number else reversed(keys))])
        return "done"

    assert together(2, work) == ["done", "done"]
    assert Job.objects.count() == rounds * size


def test_rivals_in_whole_batches_make_each_job_once():
    requests = [JobRequest("test.any", {"n": n}) for n in range(50)]
    answers = together(8, lambda _number: enqueue_many(requests, idempotency_key="k"))
    assert len({tuple(item.id for item in answer) for answer in answers}) == 1
    assert Job.objects.count() == 50
    assert sum(not answer[0].replayed for answer in answers) == 1


def test_two_transactions_that_take_two_keys_in_opposite_orders_end_as_one_job_a_key_or_a_conflict():
    halfway = threading.Barrier(2)

    def work(number):
        first, second = ("a", "b") if number else ("b", "a")
        with transaction.atomic():
            enqueue("test.any", unique_key=first)
            halfway.wait(30)
            enqueue("test.any", unique_key=second)

    outcomes = together(2, work)
    assert [type(outcome) for outcome in outcomes].count(Conflict) == 1
    assert outcomes.count(None) == 1
    assert sorted(Job.objects.values_list("unique_key", flat=True)) == ["a", "b"]
