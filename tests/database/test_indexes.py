"""The indexes that lists and gates need are there, are used, and give the order without a sort."""

import pytest

from jobs.models import Job
from tests.database import rows
from tests.database.explain import generate_jobs, indexes_used, plan_of, plan_of_queryset, sorts, tables_scanned
from tests.transitions.rows import execute

pytestmark = pytest.mark.django_db

PARKED = """
    SELECT id FROM turno.jobs
    WHERE state = 'Scheduled' AND run_at IS NULL AND waiting_for = %(gate)s AND gate = %(value)s
    ORDER BY priority DESC, created_at, id LIMIT 10 FOR NO KEY UPDATE
"""


@pytest.fixture
def many_jobs(db):
    generate_jobs()


def served_by(plan: dict, *indexes: str) -> bool:
    """One index, one of these; nothing sorted, no table read from end to end."""
    (used,) = indexes_used(plan)
    return used in indexes and not sorts(plan) and not tables_scanned(plan)


@pytest.mark.parametrize(
    ("filters", "indexes"),
    [
        ({}, ["jobs_pkey"]),
        ({"state": "Succeeded"}, ["jobs_by_state", "jobs_pkey"]),  # most of the table: either is right
        ({"state": "Enqueued"}, ["jobs_by_state"]),
        ({"type": "type.7"}, ["jobs_by_type"]),
        ({"queue": "queue-3"}, ["jobs_by_queue"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("page", ["first", "after a cursor"])
def test_a_page_of_the_list_newest_first_reads_one_index_in_its_order(many_jobs, filters, indexes, page):
    jobs = Job.objects.filter(**filters).order_by("-id")
    if page == "after a cursor":
        jobs = jobs.filter(id__lt=Job.objects.order_by("-id").values_list("id", flat=True)[3000])

    assert served_by(plan_of_queryset(jobs[:50]), *indexes)


def test_a_tag_and_a_unique_key_are_found_by_their_indexes(many_jobs):
    execute(
        "UPDATE turno.jobs SET tags = '{rare}', unique_key = 'k-' || id::text"
        " WHERE id IN (SELECT id FROM turno.jobs ORDER BY id LIMIT 3)"
    )
    execute("ANALYZE turno.jobs")

    by_tag = Job.objects.filter(tags__contains=["rare"]).exclude(tags=[]).order_by("-id")[:50]
    by_key = Job.objects.filter(unique_key="k-1").order_by("-id")[:50]

    assert indexes_used(plan_of_queryset(by_tag)) == {"jobs_by_tag"}
    assert served_by(plan_of_queryset(by_key), "jobs_by_unique_key")


def test_the_jobs_that_wait_at_a_gate_come_by_priority_and_age_from_their_index(many_jobs):
    plan = plan_of(PARKED, {"gate": "concurrency_key", "value": "key-7"})

    assert served_by(plan, "jobs_gate_order")


def test_every_foreign_key_has_an_index_that_begins_with_it():
    bare = rows.query(
        """
        SELECT c.conname FROM pg_constraint c
        WHERE c.connamespace = 'turno'::regnamespace AND c.contype = 'f' AND NOT EXISTS (
            SELECT FROM pg_index x WHERE x.indrelid = c.conrelid AND x.indkey[0] = c.conkey[1] AND x.indpred IS NULL
        )
        """
    )

    assert bare == []


def test_only_the_key_of_jobs_is_a_full_unique_index():
    # An update of a column under a full unique index takes FOR UPDATE, which waits for the foreign-key locks of the
    # rows that hang on the job.
    full = rows.query(
        """
        SELECT indexrelid::regclass::text FROM pg_index
        WHERE indrelid = 'turno.jobs'::regclass AND indisunique AND indpred IS NULL
        """
    )

    assert [name.removeprefix("turno.") for (name,) in full] == ["jobs_pkey"]


def test_no_index_is_the_beginning_of_another_one():
    doubled = rows.query(
        """
        SELECT a.indexrelid::regclass::text, b.indexrelid::regclass::text FROM pg_index a
        JOIN pg_class t ON t.oid = a.indrelid AND t.relnamespace = 'turno'::regnamespace
        JOIN pg_index b ON b.indrelid = a.indrelid AND b.indexrelid <> a.indexrelid
        WHERE NOT a.indisunique AND a.indexprs IS NULL AND b.indexprs IS NULL
          AND a.indpred::text IS NOT DISTINCT FROM b.indpred::text
          AND starts_with(b.indkey::text || ' ', a.indkey::text || ' ')
          AND starts_with(b.indclass::text || ' ', a.indclass::text || ' ')
          AND starts_with(b.indoption::text || ' ', a.indoption::text || ' ')
        """
    )

    assert doubled == []
