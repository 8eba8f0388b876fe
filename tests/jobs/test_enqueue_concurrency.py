"""Concurrency keys at the door for new jobs: what is refused, what is stored, and which requests are the same."""

import pytest
from django.utils import translation

from jobs.enqueue import Enqueued, JobRequest, enqueue, enqueue_many
from jobs.errors import IdempotencyMismatch, Invalid
from jobs.models import Job
from jobs.requests import request_hash
from jobs.states import State
from tests.jobs.enqueue_types import registered
from tests.jobs.test_enqueue_parents import BEFORE
from tests.jobs.test_enqueue_refusals import PRINTABLE_200

pytestmark = pytest.mark.django_db
LIMIT = "Expected a whole number from 1 to 1000."
K = {"concurrency_key": "k", "concurrency_limit": 2}


@pytest.fixture(autouse=True)
def types():
    with registered(), translation.override("en"):
        yield


def test_a_key_without_a_limit_lets_one_run():
    enqueue("test.any", concurrency_key="k")
    enqueue("test.any", **K)
    assert list(Job.objects.order_by("id").values_list("concurrency_key", "concurrency_limit")) == [("k", 1), ("k", 2)]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        *(({"concurrency_key": key}, {"concurrency_key": PRINTABLE_200}) for key in ("", " ", "x" * 201, "a\0b", 5)),
        *((K | {"concurrency_limit": n}, {"concurrency_limit": LIMIT}) for n in (0, -1, 1001, 1.5, "2", True)),
        ({"concurrency_limit": 2}, {"concurrency_limit": "Give the concurrency_key that it limits."}),
    ],
    ids=repr,
)
def test_a_key_or_limit_that_cannot_be_used_is_named_in_a_batch_by_its_index_and_nothing_is_stored(given, errors):
    with pytest.raises(Invalid) as caught:
        enqueue("test.any", **given)
    assert caught.value.errors == {field: [message] for field, message in errors.items()}
    with pytest.raises(Invalid) as caught:
        enqueue_many([JobRequest("test.any", **K), JobRequest("test.any", **given)])
    assert caught.value.errors == {f"1.{field}": [message] for field, message in errors.items()}
    assert not Job.objects.exists()


def test_a_key_makes_another_request_and_requests_without_one_have_the_hash_that_they_always_had():
    assert request_hash([JobRequest("test.any", {"a": 1})]) == BEFORE
    others = [{"concurrency_key": "k"}, K, K | {"concurrency_limit": 3}, {"concurrency_key": "other"}]
    hashes = {request_hash([JobRequest("test.any", {"a": 1}, **more)]) for more in ({}, *others)}
    assert len(hashes) == 5


def test_a_repeat_of_a_request_that_was_stored_before_there_were_keys_is_answered_with_its_job():
    first = enqueue("test.any", {"a": 1}, idempotency_key="k", request_hash=BEFORE)
    assert enqueue("test.any", {"a": 1}, idempotency_key="k") == Enqueued(first.id, State.ENQUEUED, replayed=True)
    with pytest.raises(IdempotencyMismatch):
        enqueue("test.any", {"a": 1}, idempotency_key="k", concurrency_key="k")


def test_a_repeat_of_a_batch_whose_rest_is_parked_is_answered_as_it_stands():
    batch = [JobRequest("test.any", {"n": n}, concurrency_key="k") for n in range(3)]
    first, again = (enqueue_many(batch, idempotency_key="b") for _ in range(2))
    assert [answer.state for answer in first] == [State.ENQUEUED, State.SCHEDULED, State.SCHEDULED]
    assert again == [Enqueued(answer.id, answer.state, replayed=True) for answer in first]
    assert Job.objects.count() == 3


def test_a_duplicate_of_a_parked_job_is_answered_with_it():
    enqueue("test.any", concurrency_key="k")
    answers = enqueue_many([JobRequest("test.any", unique_key="u", concurrency_key="k") for _ in range(2)])
    assert answers[1] == Enqueued(answers[0].id, answers[0].state, duplicate=True)
    assert Job.objects.count() == 2
