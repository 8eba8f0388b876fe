"""What an accepted job looks like, and that it exists with its transaction or not at all."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from jobs.conf import overridden
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.errors import Invalid
from jobs.ids import new_id
from jobs.models import Job, JobStateChange
from jobs.states import State
from jobs.transitions.insert import NewJob, insert
from tests.jobs.enqueue_types import Report, Row, registered


@pytest.fixture(autouse=True)
def types():
    with registered():
        yield


@pytest.fixture
def listener(clean_tables):
    """A connection of its own that listens for work."""
    params = connection.get_connection_params()
    options = {key: params[key] for key in ("host", "port", "user", "password", "dbname") if params.get(key)}
    with psycopg.connect(**options, autocommit=True) as listening:
        listening.execute("LISTEN turno_work")
        yield listening


def woken(listening):
    """The queues announced so far, in order; a notification of our own marks the end."""
    listening.execute("SELECT pg_notify('turno_work', 'that is all')")
    queues = []
    for notification in listening.notifies(timeout=30):
        if notification.payload == "that is all":
            return queues
        queues.append(notification.payload)
    raise AssertionError("the end mark never came")


@pytest.mark.django_db
def test_a_job_for_now_is_enqueued_with_a_token_and_a_first_line_in_its_history():
    answer = enqueue("test.report", {"rows": 3}, tags=["a", "b", "a"], origin="shop", owner="me", unique_key="k")
    job = Job.objects.get()
    assert (answer.id, answer.state, answer.duplicate, answer.replayed) == (job.id, State.ENQUEUED, False, False)
    assert (job.type, job.payload, job.tags, job.origin, job.owner, job.unique_key) == (
        "test.report",
        {"rows": 3},
        ["a", "b"],
        "shop",
        "me",
        "k",
    )
    assert job.dispatch_id is not None
    assert job.enqueued_at == job.created_at
    assert (job.waiting_for, job.run_at, job.not_before, job.executions, job.attempts_used) == (None, None, None, 0, 0)
    change = JobStateChange.objects.get()
    assert (change.job_id, change.from_state, change.to_state, change.reason, change.actor) == (
        job.id,
        None,
        "Enqueued",
        "created",
        "me",
    )


@pytest.mark.django_db
def test_a_delay_schedules_by_the_databases_clock():
    answer = enqueue("test.any", delay=90)
    job = Job.objects.get()
    assert (answer.state, job.waiting_for, job.dispatch_id, job.enqueued_at) == (State.SCHEDULED, "due", None, None)
    assert job.run_at == job.not_before == job.created_at + timedelta(seconds=90)
    assert JobStateChange.objects.get().to_state == "Scheduled"


@pytest.mark.django_db
def test_an_instant_to_come_is_kept_to_the_microsecond_whatever_its_offset():
    instant = datetime(2500, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    local = instant.astimezone(datetime.strptime("-0300", "%z").tzinfo)
    enqueue("test.any", run_at=local)
    enqueue("test.any", run_at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
    assert [job.run_at.year for job in Job.objects.order_by("run_at")] == [2500, 9999]
    assert Job.objects.earliest("run_at").run_at == instant


@pytest.mark.django_db
@pytest.mark.parametrize(
    "when", [{"run_at": datetime(1970, 1, 1, tzinfo=UTC)}, {"run_at": datetime.now(UTC)}, {"delay": 0}]
)
def test_an_instant_that_is_past_means_now(when):
    assert enqueue("test.any", **when).state is State.ENQUEUED


@pytest.mark.django_db
def test_the_request_wins_over_the_handler_and_the_handler_over_the_defaults():
    enqueue("test.urgent")
    enqueue("test.urgent", queue="other", priority=-10, timeout=1.5, max_attempts=100)
    enqueue("test.any")
    with overridden(resilience={"types": {"test.urgent": {"queue": "night"}}, "max_attempts": 8}):
        enqueue("test.urgent")
        enqueue("test.any")
    fields = ("queue", "priority", "timeout", "max_attempts", "at_most_once")
    assert list(Job.objects.order_by("id").values_list(*fields)) == [
        ("critical", 7, 9.0, 3, False),
        ("other", -10, 1.5, 100, False),
        ("default", 0, 600.0, 5, False),
        ("night", 7, 9.0, 3, False),
        ("default", 0, 600.0, 8, False),
    ]


@pytest.mark.django_db
def test_a_type_that_is_never_repeated_gets_one_attempt_whatever_is_asked():
    enqueue("test.once", max_attempts=7)
    job = Job.objects.get()
    assert (job.at_most_once, job.max_attempts) == (True, 1)


@pytest.mark.django_db
def test_the_payload_is_stored_as_it_was_sent_and_a_model_as_its_json():
    enqueue("test.report", {"rows": "3"})
    enqueue("test.report", Report(rows=4, when=datetime(2026, 1, 31, tzinfo=UTC), detail=Row(number=1)))
    enqueue("test.any")
    assert list(Job.objects.order_by("id").values_list("payload", flat=True)) == [
        {"rows": "3"},
        {"rows": 4, "name": "x", "kind": "short", "when": "2026-01-31T00:00:00Z", "detail": {"number": 1}},
        {},
    ]


@pytest.mark.django_db
def test_numbers_and_texts_come_back_from_the_database_as_they_went():
    payload = {"zero": -0.0, "big": 1e308, "tiny": 5e-324, "long": 2**200, "text": "é😀\\u0000\x01", "empty": ""}
    enqueue("test.any", payload)
    stored = Job.objects.get().payload
    assert stored == payload | {"big": 10**308}
    assert float(stored["big"]) == 1e308


@pytest.mark.django_db
@pytest.mark.parametrize("character", ["x", "😀"])
def test_a_payload_of_exactly_the_limit_is_accepted(character):
    room = 262_144 - len(b'{"a":""}')
    payload = {"a": character * (room // len(character.encode()))}
    enqueue("test.any", payload)
    assert Job.objects.get().payload == payload


@pytest.mark.django_db
def test_an_unknown_type_is_accepted_where_the_configuration_says_so():
    with overridden(api={"unknown_types": "accept"}):
        enqueue("elsewhere.only", {"anything": 1}, priority=2)
    assert Job.objects.values_list("type", "queue", "priority", "max_attempts").get() == (
        "elsewhere.only",
        "default",
        2,
        5,
    )


@pytest.mark.django_db
def test_a_batch_keeps_its_order_in_answers_ids_and_the_order_of_claims():
    answers = enqueue_many([JobRequest("test.any", {"n": n}) for n in range(200)])
    ids = [answer.id for answer in answers]
    assert ids == sorted(ids)
    assert len(set(ids)) == 200
    claimed = Job.objects.order_by("-priority", "enqueued_at", "id")
    assert [job.payload["n"] for job in claimed] == list(range(200))
    assert [job.id for job in claimed] == ids


@pytest.mark.django_db
def test_a_thousand_jobs_are_one_statement():
    requests = [JobRequest("test.report", {"rows": 1}) for _ in range(1000)]
    with CaptureQueriesContext(connection) as queries:
        enqueue_many(requests)
    assert [q["sql"].split()[0] for q in queries] == ["SAVEPOINT", "QUERY", "RELEASE"]
    assert Job.objects.count() == JobStateChange.objects.count() == 1000


@pytest.mark.django_db
def test_payloads_too_big_for_one_statement_are_still_one_batch(monkeypatch):
    monkeypatch.setattr("jobs.transitions.insert.STATEMENT_BYTES", 1000)
    answers = enqueue_many([JobRequest("test.any", {"a": "x" * 400}, unique_key=str(9 - n)) for n in range(10)])
    assert [answer.id for answer in answers] == list(Job.objects.order_by("id").values_list("id", flat=True))


def test_a_job_of_a_transaction_that_rolls_back_never_exists_and_wakes_nobody(listener):
    with transaction.atomic():
        enqueue("test.any")
        enqueue_many([JobRequest("test.urgent")])
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not JobStateChange.objects.exists()
    assert woken(listener) == []


def test_workers_are_woken_at_the_commit_once_a_queue_and_not_for_what_waits(listener):
    with transaction.atomic():
        enqueue_many([JobRequest("test.any"), JobRequest("test.urgent"), JobRequest("test.any")])
        enqueue("test.any")
        enqueue("test.any", queue="later", delay=60)
        assert woken(listener) == []
    assert sorted(woken(listener)) == ["critical", "default"]


def test_without_a_transaction_of_the_callers_each_call_commits(listener):
    enqueue("test.any")
    assert woken(listener) == ["default"]
    with pytest.raises(Invalid):
        enqueue_many([JobRequest("test.any"), JobRequest("test.any", priority=11)])
    assert woken(listener) == []
    assert Job.objects.count() == 1


def test_a_duplicate_wakes_nobody(listener):
    enqueue("test.any", unique_key="k")
    woken(listener)
    enqueue("test.any", unique_key="k")
    assert woken(listener) == []


@pytest.mark.django_db
def test_a_refusal_leaves_the_callers_transaction_usable():
    with transaction.atomic():
        first = enqueue("test.any", idempotency_key="k")
        for refused in ({"priority": 11}, {"payload": {"x": 1}, "idempotency_key": "k"}):
            with pytest.raises(Exception, match=r"priority|Idempotency-Key"):
                enqueue("test.any", **refused)
        second = enqueue("test.any")
    assert set(Job.objects.values_list("id", flat=True)) == {first.id, second.id}


@pytest.mark.django_db
def test_an_error_of_the_database_leaves_the_callers_transaction_usable():
    wrong = NewJob(new_id(), "test.any", "NOT A QUEUE", "{}", 0, 5, None, False)
    with transaction.atomic():
        with pytest.raises(IntegrityError):
            insert([wrong])
        enqueue("test.any")
    assert Job.objects.count() == 1
