"""What goes with a job when it is deleted, and what never does."""

import pytest
from django.db import connection

from tests.database import rows

pytestmark = pytest.mark.django_db

FOREIGN_KEYS = """
    SELECT conrelid::regclass::text, conname, confdeltype::text, condeferrable, condeferred, confrelid::regclass::text
    FROM pg_constraint WHERE connamespace = 'turno'::regnamespace AND contype = 'f'
"""
# The tables whose rows hang on a job, and the columns that name it.
HANGING = {
    "job_attempts": ["job_id"],
    "job_state_changes": ["job_id"],
    "job_logs": ["job_id"],
    "job_artifacts": ["job_id"],
    "dead_letters": ["job_id"],
    "concurrency_slots": ["job_id"],
    "outbox_messages": ["job_id"],
    "job_dependencies": ["child_id", "parent_id"],
}


def count(table: str) -> int:
    return rows.query(f'SELECT count(*) FROM turno."{table}"')[0][0]


def execute(sql: str, *params: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_everything_that_hangs_on_a_job_goes_with_it_and_nothing_of_another_job():
    job, other = rows.insert("jobs"), rows.insert("jobs")
    for table, columns in HANGING.items():
        for column in columns:
            rows.insert(table, {column: job})
            rows.insert(table, {column: other})
    before = {table: count(table) for table in HANGING}

    execute("DELETE FROM turno.jobs WHERE id = %s", job)

    assert {table: count(table) for table in HANGING} == {table: rows // 2 for table, rows in before.items()}
    assert rows.query("SELECT count(*) FROM turno.jobs WHERE id = %s", [other]) == [(1,)]


def test_a_key_takes_its_slots_along_and_no_job():
    key = rows.insert("concurrency_keys")
    rows.insert("concurrency_slots", {"key_id": key})
    jobs = count("jobs")

    execute("DELETE FROM turno.concurrency_keys WHERE id = %s", key)

    assert count("concurrency_slots") == 0
    assert count("jobs") == jobs


def test_deleting_a_worker_or_a_schedule_touches_no_job_and_no_attempt():
    worker, recurring = rows.insert("workers"), rows.insert("recurring_jobs")
    job = rows.insert("jobs", {"worker_id": worker}, state="Processing")
    fired = rows.insert("jobs", {"recurring_job_id": recurring, "fired_for": rows.NOON})
    rows.insert("job_attempts", {"job_id": job, "worker_id": worker, "worker_name": "w"})

    execute("DELETE FROM turno.workers WHERE id = %s", worker)
    execute("DELETE FROM turno.recurring_jobs WHERE id = %s", recurring)

    assert rows.query("SELECT worker_id FROM turno.jobs WHERE id = %s", [job]) == [(worker,)]
    assert rows.query("SELECT recurring_job_id FROM turno.jobs WHERE id = %s", [fired]) == [(recurring,)]
    assert rows.query("SELECT worker_id, worker_name FROM turno.job_attempts") == [(worker, "w")]


def test_every_foreign_key_cascades_in_the_database_and_is_checked_at_commit():
    keys = rows.query(FOREIGN_KEYS)

    assert {table.removeprefix("turno.") for table, *_rest in keys} == set(HANGING)
    for _table, name, on_delete, deferrable, deferred, target in keys:
        assert (on_delete, deferrable, deferred) == ("c", True, True), name
        assert target.removeprefix("turno.") in {"jobs", "concurrency_keys"}, name


def test_what_names_a_worker_or_a_schedule_has_no_foreign_key():
    targets = {target.removeprefix("turno.") for *_rest, target in rows.query(FOREIGN_KEYS)}

    assert not targets & {"workers", "recurring_jobs"}
