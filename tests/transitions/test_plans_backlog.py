"""Where nearly all jobs of the table wait a claim still walks its index: it sorts no backlog to find the best few."""

import pytest
from django.db import connections

from jobs.states import State
from jobs.transitions.claim import CLAIM_NEXT
from jobs.transitions.pauses import PARK_HEADS
from tests.database.explain import indexes_used, tables_scanned
from tests.kit import emptied
from tests.transitions.rows import Sql, execute, make_jobs
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


def nobody_has_looked():
    execute("DELETE FROM pg_statistic WHERE starelid = 'turno.jobs'::regclass")


def none_waited_then():
    """As after a quiet night: all that the statistics know of is finished, and then thousands come at once."""
    execute("DELETE FROM turno.jobs")
    old = Sql("now() - n * interval '1 minute'")
    make_jobs(5000, State.SUCCEEDED, finished_at=old, enqueued_at=old)
    execute("ANALYZE turno.jobs")
    make_jobs(5000, queue="queue-1")


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("statistics", [nobody_has_looked, none_waited_then])
def test_they_are_also_while_the_statistics_know_nothing_of_those_that_wait(statement, look, statistics, backlog, db):
    """All is rolled back with the test."""
    statistics()
    sql, params = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert "jobs_claim_order" in indexes_used(plan)
    assert tables_scanned(plan) <= SMALL
