"""An enqueue is one message to the server, by a statement that the session keeps and plans no more."""

import threading

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from jobs.enqueue import enqueue
from jobs.errors import IdempotencyMismatch
from jobs.models import Job, JobStateChange
from jobs.states import State
from jobs.transitions.insert import INSERT
from jobs.transitions.plain import PLAIN, PLAIN_DISPATCHED
from tests.database.explain import tables_scanned
from tests.jobs.enqueue_types import registered
from tests.kit.processes import database_url, eventually
from tests.transitions.rows import make_jobs
from tests.transitions.test_plans import plan_with_values, plan_without_values

KEPT = """
SELECT generic_plans, custom_plans FROM pg_prepared_statements
WHERE position('INSERT INTO turno.jobs' IN statement) > 0 ORDER BY prepare_time
"""
PARAMETERS = {"rows": "[]", "soon": 2.0, "broker": True, "types": "test.any test.report"}


@pytest.fixture(autouse=True)
def types(clean_tables):
    with registered():
        connection.close()  # a session of the test's own
        yield


def said(sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def test_the_statement_is_kept_by_the_session_and_planned_no_more_after_a_few_times():
    for _ in range(12):
        enqueue("test.any", {"a": 1})
    [(generic, custom)] = said(KEPT)
    assert (generic + custom, custom) == (12, 5)  # PostgreSQL compares the first five plans with the general one
    assert Job.objects.count() == JobStateChange.objects.count() == 12


def test_outside_of_a_transaction_it_is_one_statement_and_within_one_it_joins_it():
    enqueue("test.any")  # the first asks whose session it is
    with CaptureQueriesContext(connection) as alone:
        enqueue("test.any")
    with transaction.atomic(), CaptureQueriesContext(connection) as joined:
        enqueue("test.any")
    assert len(alone) == 1
    assert [query["sql"].split()[0] for query in joined] == ["SAVEPOINT", "QUERY", "RELEASE"]
    assert "INSERT INTO turno.jobs" in alone[0]["sql"]
    assert Job.objects.filter(state=State.ENQUEUED).count() == 3


@pytest.mark.parametrize("options", [{"unique_key": "k"}, {"idempotency_key": "k"}, {"concurrency_key": "k"}])
def test_the_other_shapes_are_kept_too(options):
    for n in range(7):
        enqueue("test.any", {}, **{name: f"{value}{n}" for name, value in options.items()})
    assert [generic + custom for generic, custom in said(KEPT)] == [7]
    assert Job.objects.count() == 7


def test_what_django_says_itself_is_not_kept():
    for n in range(12):
        enqueue("test.any")
        assert Job.objects.filter(payload={"n": n}).count() == 0
    assert connection.connection.prepare_threshold is None
    assert said("SELECT count(*) FROM pg_prepared_statements") == [(1,)]


def test_a_refusal_in_a_transaction_leaves_it_and_the_statement_usable():
    enqueue("test.any", idempotency_key="k")
    with transaction.atomic():
        enqueue("test.any")
        with pytest.raises(IdempotencyMismatch):
            enqueue("test.any", {"another": 1}, idempotency_key="k")
        enqueue("test.any")
    assert Job.objects.count() == 3


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("words", ["DEALLOCATE ALL", "DISCARD PLANS"])
def test_a_session_that_was_told_to_forget_is_told_again(words, within):
    enqueue("test.any")
    said(words)
    if within:
        with transaction.atomic():
            enqueue("test.any")
            enqueue("test.any", unique_key="k")
    else:
        enqueue("test.any")
        enqueue("test.any", unique_key="k")
    assert Job.objects.count() == JobStateChange.objects.count() == 3


def test_what_is_refused_again_and_again_leaves_nothing_in_the_session():
    said("SET default_transaction_read_only = on")
    for n in range(20):
        for options in ({}, {"unique_key": f"k{n}"}):
            with pytest.raises(DatabaseError, match="read-only"):
                enqueue("test.any", **options)
    assert said("SELECT count(*) <= 2 FROM pg_prepared_statements") == [(True,)]
    said("SET default_transaction_read_only = off")
    enqueue("test.any")
    assert Job.objects.count() == 1


def test_after_a_connection_that_broke_the_process_goes_on_by_another():
    enqueue("test.any")
    with psycopg.connect(database_url()) as rival, rival.cursor() as cursor:
        cursor.execute("LOCK TABLE turno.jobs IN ACCESS EXCLUSIVE MODE")
        own = connection.connection.info.backend_pid
        ending = threading.Thread(target=ended_when_it_waits, args=(own,))
        ending.start()
        with pytest.raises(DatabaseError):
            enqueue("test.any")
        ending.join(60)
    assert Job.objects.count() == 1


def ended_when_it_waits(pid):
    with psycopg.connect(database_url(), autocommit=True) as other:
        waits = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
        eventually(lambda: other.execute(waits, [pid]).fetchone() == (True,), "the enqueue waits for the table")
        other.execute("SELECT pg_terminate_backend(%s)", [pid])


def test_a_table_that_was_changed_meanwhile_is_seen_as_it_is():
    for _ in range(7):
        enqueue("test.any")
    try:
        said("ALTER TABLE turno.jobs ADD COLUMN of_the_next_version int DEFAULT 3")
        enqueue("test.any")
        assert said("SELECT DISTINCT of_the_next_version FROM turno.jobs") == [(3,)]
    finally:
        said("ALTER TABLE turno.jobs DROP COLUMN of_the_next_version")
    enqueue("test.any")
    assert Job.objects.count() == 9


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", [INSERT, PLAIN, PLAIN_DISPATCHED], ids=["any", "plain", "of a broker"])
def test_an_insert_reads_nothing_that_grows(statement, look):
    with transaction.atomic(), connection.cursor() as cursor:
        make_jobs(3000)  # of few any plan reads all
        cursor.execute("ANALYZE turno.jobs")
        scanned = tables_scanned(look(cursor, statement, PARAMETERS))
        transaction.set_rollback(True)
    assert scanned <= {"job_types", "rates", "queues"}
