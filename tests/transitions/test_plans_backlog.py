"""Where nearly all jobs of the table wait a claim still walks its index: it sorts no backlog to find the best few."""

import pytest
from django.db import connections

from jobs.transitions.claim import CLAIM_NEXT
from jobs.transitions.pauses import PARK_HEADS
from tests.database.explain import indexes_used, tables_scanned
from tests.kit import emptied
from tests.transitions.rows import execute, make_jobs
from tests.transitions.test_plans import MET, OFFER, OWNER, SMALL, plan_with_values, plan_without_values

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def backlog(django_db_setup, django_db_blocker):
    """Twenty thousand jobs that wait in one queue, and statistics that know of them."""
    with django_db_blocker.unblock():
        emptied.anew()
        make_jobs(20_000, queue="queue-1")
        execute("ANALYZE turno.jobs")
    yield
    with django_db_blocker.unblock():
        emptied.anew()


STATEMENTS = {
    "claim": (CLAIM_NEXT, OWNER | OFFER),
    "park what waits at a pause": (PARK_HEADS, MET | {"head": 200, "silent": 15.0, "limit": 200}),
}


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("pauses", [0, 20])
def test_the_best_few_are_found_by_the_index_of_claims(statement, look, pauses, backlog, db):
    execute(
        "INSERT INTO turno.pauses (scope, value) SELECT (ARRAY['type', 'tag', 'key'])[n %% 3 + 1], n::text"
        " FROM generate_series(1, %s) AS n", pauses,
    )  # fmt: skip
    sql, params = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert "jobs_claim_order" in indexes_used(plan)
    assert tables_scanned(plan) <= SMALL
