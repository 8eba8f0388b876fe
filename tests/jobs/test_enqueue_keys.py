"""Unique keys and idempotency keys, one caller at a time."""

import pytest
from django.db import connection, transaction
from django.utils import translation

from jobs.enqueue import Enqueued, JobRequest, enqueue, enqueue_many
from jobs.errors import Conflict, IdempotencyMismatch
from jobs.models import Job
from jobs.states import State
from jobs.transitions import insert as verb
from tests.jobs.enqueue_types import registered

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def types():
    with registered(), translation.override("en"):
        yield


def end(job_id):
    """Make a job final by plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE turno.jobs SET state = 'Succeeded', finished_at = now(), waiting_for = NULL, run_at = NULL"
            " WHERE id = %s",
            [job_id],
        )


def test_a_second_job_of_a_unique_key_is_answered_with_the_active_one():
    first = enqueue("test.any", {"n": 1}, unique_key="k", delay=60)
    second = enqueue("test.report", {"rows": 2}, unique_key="k")
    assert second == Enqueued(first.id, State.SCHEDULED, duplicate=True)
    assert Job.objects.count() == 1


def test_a_unique_key_is_free_again_when_its_job_has_ended():
    first = enqueue("test.any", unique_key="k")
    end(first.id)
    second = enqueue("test.any", unique_key="k")
    assert second.id != first.id
    assert not second.duplicate


def test_of_two_equal_unique_keys_in_a_batch_the_second_is_answered_with_the_first():
    answers = enqueue_many([JobRequest("test.any", {"n": n}, unique_key=key) for n, key in enumerate("zaaz")])
    assert [answer.duplicate for answer in answers] == [False, False, True, True]
    assert answers[3].id == answers[0].id
    assert answers[2].id == answers[1].id
    assert sorted(Job.objects.values_list("payload__n", "unique_key")) == [(0, "z"), (1, "a")]


def test_a_holder_that_ends_between_the_statements_does_not_stand_in_the_way(monkeypatch):
    first = enqueue("test.any", unique_key="k")
    look = verb._answers

    def end_first(*args):
        end(first.id)
        return look(*args)

    monkeypatch.setattr(verb, "_answers", end_first)
    second = enqueue("test.any", unique_key="k")
    assert not second.duplicate
    assert Job.objects.get(state="Enqueued").id == second.id


def test_a_key_that_stays_busy_without_a_holder_is_a_conflict_and_not_an_endless_loop(monkeypatch):
    first = enqueue("test.any", unique_key="k")
    monkeypatch.setattr(verb, "_answers", lambda *args: {})
    with pytest.raises(Conflict) as caught:
        enqueue_many([JobRequest("test.any"), JobRequest("test.any", unique_key="k")])
    assert caught.value.extra["retry_after"] == 1
    assert Job.objects.get().id == first.id


@pytest.mark.parametrize(
    "repeat",
    [
        {"payload": {"b": [1, {"y": 2, "x": 1}], "a": 1}},
        {"delay": 60.0},
        {"origin": "elsewhere"},
        {"tags": ("t",)},
    ],
)
def test_a_repeat_of_an_idempotency_key_is_answered_with_the_first_job(repeat):
    request = {"payload": {"a": 1, "b": [1, {"x": 1, "y": 2}]}, "delay": 60, "tags": ["t"]}
    first = enqueue("test.any", **request, idempotency_key="k")
    second = enqueue("test.any", **(request | repeat), idempotency_key="k")
    assert second == Enqueued(first.id, State.SCHEDULED, replayed=True)
    end(first.id)
    assert enqueue("test.any", **request, idempotency_key="k") == Enqueued(first.id, State.SUCCEEDED, replayed=True)


@pytest.mark.parametrize(
    "other",
    [
        {"payload": {"a": 2}},
        {"priority": 1},
        {"queue": "q"},
        {"delay": 61},
        {"tags": ["u"]},
        {"unique_key": "u"},
        {"timeout": 5},
        {"max_attempts": 1},
    ],
)
def test_an_idempotency_key_with_another_request_is_refused(other):
    request = {"payload": {"a": 1}, "delay": 60}
    enqueue("test.any", **request, idempotency_key="k")
    with pytest.raises(IdempotencyMismatch, match=r"^This Idempotency-Key was used with another request\.$"):
        enqueue("test.any", **(request | other), idempotency_key="k")
    assert Job.objects.count() == 1


def test_a_hash_that_the_caller_gives_decides_instead_of_the_request():
    first = enqueue("test.any", {"a": 1}, idempotency_key="k", request_hash="h")
    assert enqueue("test.any", {"a": 2}, idempotency_key="k", request_hash="h").id == first.id
    with pytest.raises(IdempotencyMismatch):
        enqueue("test.any", {"a": 1}, idempotency_key="k", request_hash="i")


def test_an_idempotency_key_is_bound_to_its_owner_and_route():
    places = [
        {},
        {"owner": "a"},
        {"owner": "b"},
        {"route": "POST /api/jobs"},
        {"owner": "a", "route": "POST /api/jobs"},
    ]
    firsts = [enqueue("test.any", {"n": n}, idempotency_key="k", **place) for n, place in enumerate(places)]
    assert not any(first.replayed for first in firsts)
    seconds = [enqueue("test.any", {"n": n}, idempotency_key="k", **place) for n, place in enumerate(places)]
    assert [second.id for second in seconds] == [first.id for first in firsts]
    assert all(second.replayed for second in seconds)


def test_the_idempotency_key_is_asked_before_the_unique_key():
    first = enqueue("test.any", unique_key="u", idempotency_key="k")
    assert enqueue("test.any", unique_key="u", idempotency_key="k") == Enqueued(first.id, State.ENQUEUED, replayed=True)
    assert enqueue("test.any", unique_key="u", idempotency_key="l") == Enqueued(
        first.id, State.ENQUEUED, duplicate=True
    )


def batch(*numbers, **options):
    return enqueue_many([JobRequest("test.any", {"n": n}) for n in numbers], idempotency_key="k", **options)


def test_a_repeat_of_a_batch_is_answered_with_all_its_first_jobs_in_order():
    first = batch(0, 1, 2)
    assert sorted(Job.objects.values_list("idempotency_key", flat=True)) == ["k#0", "k#1", "k#2"]
    second = batch(0, 1, 2)
    assert [answer.id for answer in second] == [answer.id for answer in first]
    assert all(answer.replayed for answer in second)


@pytest.mark.parametrize("other", [(0, 1), (0, 1, 2, 3), (0, 2, 1), (5, 1, 2)])
def test_a_batch_key_with_another_batch_is_refused_whole(other):
    batch(0, 1, 2)
    with pytest.raises(IdempotencyMismatch):
        batch(*other)
    assert Job.objects.count() == 3


def test_a_repeat_of_a_batch_runs_nothing_again_that_retention_has_removed():
    first = batch(0, 1, 2)
    Job.objects.filter(id=first[1].id).delete()
    with transaction.atomic(), pytest.raises(Conflict, match="no longer kept: 1"):
        batch(0, 1, 2)
    assert Job.objects.count() == 2


def test_a_repeat_of_a_batch_with_a_duplicate_in_it_is_answered_in_full():
    enqueue("test.any", unique_key="u")
    requests = [JobRequest("test.any"), JobRequest("test.any", unique_key="u")]
    first = enqueue_many(requests, idempotency_key="k")
    second = enqueue_many(requests, idempotency_key="k")
    assert [answer.id for answer in second] == [answer.id for answer in first]
    assert [(answer.replayed, answer.duplicate) for answer in second] == [(True, False), (False, True)]


def test_a_repeat_of_a_batch_makes_a_new_job_where_the_first_was_a_duplicate_that_has_ended():
    active = enqueue("test.any", unique_key="u")
    requests = [JobRequest("test.any"), JobRequest("test.any", unique_key="u")]
    first = enqueue_many(requests, idempotency_key="k")
    end(active.id)
    second = enqueue_many(requests, idempotency_key="k")
    assert second[0] == Enqueued(first[0].id, State.ENQUEUED, replayed=True)
    assert Job.objects.get(idempotency_key="k#1").id == second[1].id != active.id


def test_keys_of_single_jobs_in_a_batch_are_answered_one_by_one():
    first = enqueue("test.any", {"n": 1}, idempotency_key="one")
    answers = enqueue_many(
        [JobRequest("test.any", {"n": n}, idempotency_key=key) for n, key in [(0, "zero"), (1, "one")]]
    )
    assert [answer.replayed for answer in answers] == [False, True]
    assert answers[1].id == first.id


def test_the_limit_on_waiting_is_gone_afterwards():
    def limit():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('lock_timeout')")
            return cursor.fetchone()[0]

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '7s'")
        enqueue("test.any", {"n": 1}, idempotency_key="k")
        assert limit() == "7s"
        with pytest.raises(IdempotencyMismatch):
            enqueue("test.any", {"n": 2}, idempotency_key="k")
        assert limit() == "7s"
