"""Unique and idempotency keys under hundreds of pairs of rivals, through the API: one job a key, and no error."""

import threading
from collections import Counter

import pytest
from django.db import transaction

from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job
from tests.api.client import Api
from tests.jobs.enqueue_types import registered
from tests.races.test_insert import together

pytestmark = pytest.mark.usefixtures("clean_tables")
PAIRS = 500
AT_ONCE = 4  # pairs
HEADERS = ["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"]
PATIENCE = 60.0  # seconds


@pytest.fixture(autouse=True)
def types(clean_tables):
    with registered():
        yield


def posted(api, number):
    """The answer to one of a pair: by turns with a unique key, and with an idempotency key, its header as one likes."""
    body = {"type": "test.any", "payload": {"n": number}}
    if number % 2:
        return api.post("/api/jobs", body | {"unique_key": f"u-{number}"})
    return api.post("/api/jobs", body, **{HEADERS[number // 2 % 3]: f"i-{number}"})


def test_five_hundred_pairs_at_once_make_five_hundred_jobs_and_each_learns_its_id_or_that_it_is_in_progress():
    barriers = [threading.Barrier(2) for _ in range(AT_ONCE)]

    def work(worker):
        api, pair = Api(), worker // 2
        answers = {}
        for number in range(pair, PAIRS, AT_ONCE):
            barriers[pair].wait(PATIENCE)
            answers[number] = posted(api, number)
        return answers

    answered = together(2 * AT_ONCE, work)
    statuses = Counter()
    for one, other in zip(answered[::2], answered[1::2], strict=True):
        for number, first in one.items():
            pair = sorted((first, other[number]), key=lambda answer: -answer.status)
            statuses[tuple(answer.status for answer in pair)] += 1
            assert len({answer.json["id"] for answer in pair if answer.status < 400}) == 1
    assert statuses.keys() <= {(201, 200), (409, 201)}
    assert Job.objects.count() == sum(statuses.values()) == PAIRS


BATCH = [JobRequest("test.any", {"n": n}) for n in range(3)]
ASKS = {
    "unique_key": lambda key: [enqueue("test.any", unique_key=key)],
    "idempotency_key": lambda key: [enqueue("test.any", idempotency_key=key)],
    "batch": lambda key: enqueue_many(BATCH, idempotency_key=key),
    "batch of keys": lambda key: enqueue_many([JobRequest("test.any", unique_key=f"{key}-{n}") for n in range(3)]),
}


@pytest.mark.parametrize("way", ASKS)
def test_of_rivals_that_commit_and_roll_back_by_turns_each_key_has_one_job_or_one_whole_batch(way):
    rounds, ask = 30, ASKS[way]
    barrier = threading.Barrier(2)

    def first(number):
        with transaction.atomic():
            answers = ask(f"k-{number}")
            barrier.wait(PATIENCE)
            transaction.set_rollback(number % 2 == 1)
        return answers

    def second(number):
        barrier.wait(PATIENCE)
        return ask(f"k-{number}")

    one, other = together(2, lambda who: [(second if who else first)(number) for number in range(rounds)])
    kept = set()
    for number, (theirs, mine) in enumerate(zip(one, other, strict=True)):
        rolled_back = number % 2 == 1
        assert [answer.duplicate or answer.replayed for answer in mine] == [not rolled_back] * len(mine)
        assert ({answer.id for answer in mine} == {answer.id for answer in theirs}) is not rolled_back
        kept |= {answer.id for answer in mine}
    assert set(Job.objects.values_list("id", flat=True)) == kept


def test_one_key_of_other_owners_and_other_routes_at_once_is_no_key_of_theirs():
    places = [{"owner": owner, "route": route} for owner in (None, "a", "b", "c") for route in ("one", "two")]
    answers = together(16, lambda number: enqueue("test.any", idempotency_key="k", **places[number % 8]))
    assert Counter(answer.replayed for answer in answers) == {False: 8, True: 8}
    assert [answers[n].id for n in range(8)] == [answers[n].id for n in range(8, 16)]
    assert Job.objects.count() == len({answer.id for answer in answers}) == 8
