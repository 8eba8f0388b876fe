"""The reads of one job: by indexes, bounded, by the database's clock."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import orjson
import pytest

from jobs.conf import overridden
from jobs.queries import glance, hindrances, waiting
from jobs.queries.glance import GLANCE, LETTER, SIBLINGS, WHOLE
from tests.database.explain import generate_jobs, plan_of, sorts, tables_scanned
from tests.queries.house import message
from tests.transitions import rows
from tests.transitions.rows import ago, ahead

pytestmark = pytest.mark.django_db
RABBITMQ = {"transport": "rabbitmq", "urls": ("amqp://127.0.0.1/",)}


def soon(seconds):
    """An instant ahead."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_no_statement_reads_the_jobs_from_end_to_end():
    generate_jobs()
    place = {"queue": "queue-3", "priority": 0, "enqueued_at": "2026-01-01T00:00Z", "id": uuid4(), "most": 1001}
    for sql, params in (
        (GLANCE, {"id": uuid4(), "lease": 60.0}),
        (WHOLE, {"id": uuid4(), "lease": 60.0}),
        (waiting.AHEAD, place),
        (waiting.ROOM, {"queue": "queue-3", "silent": 15.0}),
        (waiting.SINCE, {"id": uuid4()}),
        (waiting.MESSAGE, {"id": uuid4()}),
    ):
        plan = plan_of(sql, params)
        assert "jobs" not in tables_scanned(plan)
        assert not sorts(plan)


def test_the_letters_of_a_cause_are_counted_up_to_a_bound():
    first = rows.make_job("Failed", executions=1)
    rows.make_letter(first, fingerprint="same")
    rows.make_jobs(SIBLINGS + 5, "Failed", type="many.failed")
    rows.execute(
        "INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts) "
        "SELECT gen_random_uuid(), id, type, queue, 'error', 'same', 1 FROM turno.jobs WHERE type = 'many.failed'"
    )
    assert glance(first.id).letter.siblings == SIBLINGS
    rows.execute("UPDATE turno.dead_letters SET fingerprint = id::text WHERE job_id <> %s", first.id)
    rows.execute("ANALYZE turno.dead_letters")
    assert "dead_letters" not in tables_scanned(plan_of(LETTER, {"id": first.id, "most": SIBLINGS}))


def test_ages_are_the_databases():
    made = rows.make_job("Processing", claimed_at=ago(84), enqueued_at=ago(87), lease_expires_at=ahead(56))
    job = glance(made.id).job
    assert [round(job[name]) for name in ("elapsed", "waited", "lease_left")] == [84, 3, 56]


def test_a_job_returns_when_its_worker_is_silent_stopped_or_gone():
    insert = (
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state,"
        " seen_at) VALUES (%s, 'w', 'h', %s, 'n', 1, '1', '1', '{}', %s, now() - %s * interval '1 second')"
    )
    found = {}
    for name, state, seen in (("live", "Online", 1), ("draining", "Draining", 1), ("silent", "Online", 40),
                              ("stopped", "Offline", 1), ("gone", None, 0)):  # fmt: skip
        worker = uuid4()
        if state is not None:
            rows.execute(insert, worker, name, state, seen)
        made = rows.make_job("Processing", worker=worker, lease_expires_at=ahead(20))
        found[name] = glance(made.id).returns_in
    assert found["live"] is found["draining"] is None
    assert [round(found[name]) for name in ("silent", "stopped", "gone")] == [35, 35, 35]


def test_only_the_pauses_that_bite_are_told():
    made = rows.make_job(tags=["a"], type="test.echo", queue="default", concurrency_key="k", concurrency_limit=1)
    for scope, value, until in (("queue", "default", "now() + interval '1 h'"), ("type", "test.echo", "NULL"),
                                ("tag", "a", "NULL"), ("key", "k", "NULL"), ("queue", "other", "NULL"),
                                ("tag", "b", "now() - interval '1 h'"), ("type", "default", "NULL")):  # fmt: skip
        rows.execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES (%s, %s, {until})", scope, value)
    found = hindrances(glance(made.id).job)
    assert {pause.scope for pause in found.pauses} == {"queue", "type", "tag", "key"}
    assert len(found.pauses) == 4


def test_what_live_workers_of_its_queue_can_not_import_is_told_where_none_has_its_type():
    made = rows.make_job(type="shop.pack", queue="default")
    broken, other = {"module": "shop.jobs", "error": "SyntaxError: bad"}, {"part": "x", "error": "y"}
    problems = orjson.dumps([broken, other]).decode()
    rows.make_worker(queues={"default": 2}, types=["other"], problems=problems)
    rows.make_worker(queues={"elsewhere": 2}, types=[], problems=problems.replace("shop.jobs", "far.jobs"))
    assert hindrances(glance(made.id).job).unloaded == ("shop.jobs, SyntaxError: bad",)
    rows.make_worker(queues={"default": 2}, types=["shop.pack"])
    assert hindrances(glance(made.id).job).unloaded == ()


def test_jobs_ahead_are_those_that_would_be_claimed_first():
    made = rows.make_job(priority=1, enqueued_at=ago(50))
    for priority, age, queue in ((2, 1, "default"), (1, 60, "default"), (1, 40, "default"), (0, 900, "default"),
                                 (10, 900, "other")):  # fmt: skip
        rows.make_job(priority=priority, enqueued_at=ago(age), queue=queue)
    assert hindrances(glance(made.id).job).ahead == 2
    rows.make_jobs(3000, priority=9)
    assert hindrances(glance(made.id).job).ahead > waiting.COUNTED


def test_where_the_message_of_a_queued_job_is_is_known_with_a_broker_alone():
    made = rows.make_job()
    message(made, age=12, failures=2, last_error="no queue", locked_until=soon(7))
    message(made, age=900, dispatch_id=uuid4())  # of an earlier entry
    assert hindrances(glance(made.id).job).message is None
    with overridden(messaging=RABBITMQ):
        found = hindrances(glance(made.id).job).message
        assert (found.waiting, found.failures, found.error) == (True, 2, "no queue")
        assert 12 <= found.age < 30
        assert 5 < found.retry_in <= 8
        announced = hindrances(glance(rows.make_job(announced_at=ago(30)).id).job).message
        assert (announced.waiting, announced.failures, announced.retry_in) == (False, 0, None)
        assert 30 <= announced.age < 60
        assert hindrances(glance(rows.make_job().id).job).message == waiting.Message(False, None, 0, "", None)
        parked = rows.make_job("Scheduled", waiting_for="unknown_type", gate="test.echo")
        assert hindrances(glance(parked.id).job).message is None


def test_a_job_that_runs_or_ended_has_no_hindrances():
    for state in ("Processing", "Succeeded", "Failed", "Cancelled", "Scheduled"):
        assert hindrances(glance(rows.make_job(state).id).job) is None


def test_the_payload_is_read_for_the_page_only():
    made = rows.make_job(payload={"a": 1})
    assert glance(made.id).job["payload"] == {"a": 1}
    assert "payload" not in glance(made.id, whole=False).job
    assert glance(uuid4()) is None
