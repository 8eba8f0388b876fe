"""What the list reads is found by its indexes on a large table; nothing is read from end to end, nor counted so."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connections
from django.db.models import Q

from jobs.models import Job
from jobs.queries import JobFilter, now
from jobs.queries.jobfilter import branches, conditions
from jobs.queries.joblist import ROWS
from tests.database.explain import generate_jobs, indexes_used, plan_of, plan_of_queryset, sorts, tables_scanned
from tests.transitions.rows import execute

pytestmark = pytest.mark.django_db
RECURRING = {"jobs_by_recurring", "jobs_one_fired_instant"}


@pytest.fixture
def many_jobs(db):
    generate_jobs()
    execute(
        "UPDATE turno.jobs SET tags = '{rare}', unique_key = 'u-' || id, idempotency_key = 'i-' || id, route = 'r',"
        " request_hash = 'h', concurrency_key = 'c-' || id, concurrency_limit = 1"
        " WHERE id IN (SELECT id FROM turno.jobs ORDER BY id LIMIT 20)"
    )
    execute("ANALYZE turno.jobs")


def plans(wanted: JobFilter, condition: str = "base") -> list[dict]:
    return [
        plan_of_queryset(Job.objects.filter(getattr(branch, condition)).order_by("-id").values("id")[:51])
        for branch in branches(wanted)
    ]


@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        (JobFilter(), {"jobs_pkey"}),
        (JobFilter(shown="Enqueued"), {"jobs_by_state", "jobs_parked_order"}),
        (JobFilter(shown="Failed"), {"jobs_by_state"}),
        (JobFilter(shown="Succeeded"), {"jobs_by_state", "jobs_pkey"}),
        (JobFilter(type="type.7"), {"jobs_by_type"}),
        (JobFilter(queue="queue-3"), {"jobs_by_queue"}),
        (JobFilter(tag="rare"), {"jobs_by_tag"}),
        (JobFilter(worker="worker-1"), {"jobs_of_worker", "jobs_lease_order", "jobs_by_state"}),
        (JobFilter(shown="Failed", text="x"), {"jobs_by_state"}),
        (JobFilter(key="c"), {"jobs_by_concurrency_key"}),
        (JobFilter(waiting="concurrency_key", key="c"), {"jobs_gate_order", "jobs_parked_order"}),
        (JobFilter(waiting="type_limit", type="t"), {"jobs_gate_order", "jobs_parked_order"}),
        (JobFilter(waiting="retry"), {"jobs_by_state", "jobs_due_order"}),
        (JobFilter(recurring=UUID(int=7)), RECURRING),
        (JobFilter(recurring=UUID(int=7), shown="Succeeded", type="type.7"), RECURRING),
        (JobFilter(recurring=UUID(int=7), shown="Failed"), RECURRING),
        (JobFilter(text="x", priority=9, attempts=3, error_type="E", origin="o"), {"jobs_pkey"}),
    ],
    ids=lambda value: str(value) if isinstance(value, JobFilter) else None,  # sets have no order
)
def test_what_a_walk_goes_along_is_an_index(many_jobs, wanted, indexes):
    for plan in plans(wanted):
        assert indexes_used(plan) <= indexes
        assert indexes_used(plan)
        assert not tables_scanned(plan)


def test_each_way_of_a_key_search_has_an_index(many_jobs):
    used = [indexes_used(plan) for plan in plans(JobFilter(keys="u-1"))]
    assert set().union(*used) == {
        "jobs_by_unique_key", "jobs_by_concurrency_key", "jobs_by_idempotency_key", "jobs_by_tag", "jobs_by_type",
        "jobs_by_queue",
    }  # fmt: skip
    assert not any(tables_scanned(plan) for plan in plans(JobFilter(keys="0199e1f2"), "all"))


@pytest.mark.parametrize("wanted", [JobFilter(), JobFilter(shown="Failed"), JobFilter(type="type.7")], ids=str)
def test_a_page_in_the_order_of_ids_sorts_nothing(many_jobs, wanted):
    assert not any(sorts(plan) for plan in plans(wanted, "all"))


def test_a_window_in_time_is_narrowed_by_the_primary_key(many_jobs):
    wanted = JobFilter(created_from=now() - timedelta(minutes=15))
    text = str(Job.objects.filter(conditions(wanted)[0]).query)
    assert '"id" >=' in text
    assert '"created_at" >=' in text


def test_the_rows_of_a_page_are_found_by_their_ids(many_jobs):
    ids = list(Job.objects.values_list("id", flat=True)[:50])
    plan = plan_of(ROWS, {"ids": ids, "length": 80, "fields": 8})
    assert indexes_used(plan) >= {"jobs_pkey", "attempts_one_ordinal", "jobs_claim_order"}
    assert not tables_scanned(plan) - {"pauses"}


def test_no_count_reads_further_than_its_bound(many_jobs):
    with connections["default"].cursor() as cursor:
        for condition in (*conditions(JobFilter()), *conditions(JobFilter(shown="Enqueued")), Q()):
            sql, params = Job.objects.filter(condition).order_by()[:101].query.sql_with_params()
            cursor.execute(f"SELECT count(*) FROM ({sql}) AS x", params)
            assert cursor.fetchone()[0] == 101
