"""`enqueue(after=…)` and `enqueue_many`: the doors of code for continuations."""

from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import translation

from jobs import transitions
from jobs.bounds import PARENTS
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.errors import Invalid
from jobs.models import Job, JobDependency
from jobs.requests import request_hash
from jobs.states import State, Waiting
from tests.jobs.enqueue_types import registered

pytestmark = pytest.mark.django_db
UNKNOWN = "No job has this id."
# Of {"type": "test.any", "payload": {"a": 1}}, as versions without continuations stored it.
BEFORE = "e34c76955935a75e04a3a8c8e19b6c54ca7b245b8d079120fd55d8ebb597b622"


@pytest.fixture(autouse=True)
def types():
    with registered(), translation.override("en"):
        yield


def errors_of(**request):
    with pytest.raises(Invalid) as caught:
        enqueue("test.any", **request)
    return caught.value.errors


def test_a_child_waits_for_its_parents_by_the_policy_that_was_asked_for():
    parent = enqueue("test.any")
    child = enqueue("test.any", after=[parent.id], on_parent_failure="run")
    assert child.state is State.SCHEDULED
    assert Job.objects.get(id=child.id).waiting_for == Waiting.PARENTS
    assert list(JobDependency.objects.values_list("child_id", "parent_id", "policy")) == [(child.id, parent.id, "run")]


def test_no_parents_are_no_continuation():
    assert enqueue("test.any", after=[]).state is enqueue("test.any", after=()).state is State.ENQUEUED


def test_jobs_of_the_callers_own_transaction_may_be_waited_for():
    with transaction.atomic():
        parent = enqueue("test.any", owner="ana")
        child = enqueue("test.any", after=(parent.id,), owner="ana")
    assert child.state is State.SCHEDULED


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ("x", "after", "Expected a list of ids of jobs."),
        (None, "after", "Expected a list of ids of jobs."),
        ({uuid4()}, "after", "Expected a list of ids of jobs."),
        ([str(uuid4())], "after.0", "Expected the id of a job."),
        ([None], "after.0", "Expected the id of a job."),
        ([uuid4() for _ in range(PARENTS + 1)], "after", "Expected at most 100 jobs."),
        ([uuid4()], "after.0", UNKNOWN),
    ],
)
def test_what_is_wrong_with_the_parents_is_named(value, field, message):
    assert errors_of(after=value) == {field: [message]}
    assert not Job.objects.exists()


def test_a_policy_is_one_of_two_and_needs_parents():
    assert errors_of(on_parent_failure="wait", after=[uuid4()]) == {
        "on_parent_failure": ["Expected one of: cancel, run."]
    }
    assert errors_of(on_parent_failure="run") == {"on_parent_failure": ["Give it together with after."]}


def test_a_purged_parent_and_another_owners_are_refused_and_the_transaction_stays_usable():
    with transaction.atomic():
        gone, theirs = enqueue("test.any").id, enqueue("test.any", owner="rui").id
        transitions.cancel([gone])
        transitions.delete([gone])
        assert errors_of(after=[theirs, gone], owner="ana") == {"after.0": [UNKNOWN], "after.1": [UNKNOWN]}
        assert errors_of(after=[theirs]) == {"after.0": [UNKNOWN]}
        enqueue("test.any", owner="rui", after=[theirs])
    assert Job.objects.count() == 2


@pytest.mark.parametrize("key", [None, "batch"])
def test_in_a_batch_they_are_named_by_index(key):
    parent = enqueue("test.any").id
    requests = [JobRequest("test.any", after=after) for after in ([parent], [uuid4()], [parent, uuid4()])]
    with pytest.raises(Invalid) as caught:
        enqueue_many(requests, idempotency_key=key)
    assert caught.value.errors == {"1.after.0": [UNKNOWN], "2.after.1": [UNKNOWN]}
    assert Job.objects.count() == 1


def test_a_batch_of_children_of_a_hundred_parents_each_is_accepted():
    parents = [one.id for one in enqueue_many([JobRequest("test.any") for _ in range(PARENTS)])]
    placed = enqueue_many([JobRequest("test.any", after=parents) for _ in range(50)])
    assert {one.state for one in placed} == {State.SCHEDULED}
    assert JobDependency.objects.count() == 5000


def test_parents_make_another_request_and_requests_without_hash_as_before():
    plain, parent = JobRequest("test.any", {"a": 1}), uuid4()
    assert request_hash([plain]) == BEFORE
    hashes = {
        request_hash([JobRequest("test.any", {"a": 1}, **more)])
        for more in ({}, {"after": [parent]}, {"after": [parent], "on_parent_failure": "run"}, {"after": [uuid4()]})
    }
    assert len(hashes) == 4
