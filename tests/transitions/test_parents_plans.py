"""Continuations read neither jobs nor dependencies from end to end, also while the statistics know of no child.

The engine's statements are prepared: both plans, with their values and without.
"""

from itertools import pairwise
from uuid import uuid4

import pytest
from django.db import connections

from jobs.states import State
from jobs.transitions.forgotten import AT_GATES, NEXT_GATES, UNSEEN
from jobs.transitions.insert import INSERT
from jobs.transitions.parents import (
    ANY_CHILD,
    CHILDREN,
    COLUMNS,
    DEPEND,
    FALL,
    LOCK_CHILDREN,
    LOCK_PARENTS,
    PARK,
    UNFINISHED,
    WAIT_AT,
    WAIT_FOR_INSTANT,
    WAITING,
    WAKE,
)
from jobs.transitions.purge import HOLD, LOOK, STILL, UNLINK
from jobs.transitions.sql import arrays
from tests.database.explain import indexes_used, tables_scanned
from tests.kit import emptied
from tests.transitions.rows import Sql, execute, make_jobs
from tests.transitions.test_plans import plan_with_values, plan_without_values

pytestmark = pytest.mark.django_db
IDS = [uuid4() for _ in range(50)]
OLD = {
    "state": "Succeeded", "age": 7 * 86400.0, "letters": 1e6, "ended": "-infinity", "after": IDS[0], "looked_at": 5000,
    "limit": 500, "ids": IDS, "rows": 5000,
}  # fmt: skip
STATEMENTS = {
    "depend": (DEPEND, arrays(COLUMNS, [(one, other, "run") for one, other in pairwise(IDS)])),
    "who has children": (ANY_CHILD, {"ended": IDS[:20]}),
    "the children": (CHILDREN, {"ended": IDS, "found": 25_000}),
    "the lock of parents": (LOCK_PARENTS, {"ids": IDS, "soon": 2.0}),
    "who still waits": (WAITING, {"ids": IDS}),
    "the lock of children": (LOCK_CHILDREN, {"ids": IDS}),
    "what falls": (FALL, {"ids": IDS}),
    "what has not ended": (UNFINISHED, {"ids": IDS}),
    "wake": (WAKE, {"ids": IDS, "broker": True}),
    "wait for an instant": (WAIT_FOR_INSTANT, {"ids": IDS, "soon": 2.0}),
    "wait at another": (WAIT_AT, {"id": IDS, "gate": [str(id_) for id_ in IDS]}),
    "park": (PARK, {"ids": IDS}),
    "unseen": (UNSEEN, {"unseen_for": 2.0, "limit": 200}),
    "unseen, while all are new": (UNSEEN, {"unseen_for": 1e6, "limit": 200}),
    "unseen, while all are old": (UNSEEN, {"unseen_for": -1e6, "limit": 200}),
    "gates": (NEXT_GATES, {"after": str(IDS[0]), "gates": 1000}),
    "at gates": (AT_GATES, {"gates": [str(id_) for id_ in IDS], "limit": 500}),
    "the look of retention": (LOOK.format(state="Succeeded"), OLD),
    "the lock of retention": (HOLD, OLD),
    "its second look": (STILL, OLD),
    "what is unlinked": (UNLINK, OLD),
}
MEANT = {
    "jobs_pkey", "jobs_child_order", "jobs_finished_order", "job_dependencies_pkey", "dependencies_one_pair",
    "job_dependencies_parent_id_b158293b", "dead_letters_by_cause", "dead_letters_job_id_685369d4",
    "dead_letters_one_pending",
}  # fmt: skip
# Pages are what a pass over a table costs: one of few pages is as cheap as fifty lookups, whatever the planner knows.
AS_WIDE_AS_REAL_ONES = Sql("jsonb_build_object('text', repeat('x', 1500))")
OF_RETENTION = ["the look of retention", "its second look", "what is unlinked"]
LOOKS = pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])


@pytest.fixture(scope="module")
def many_children(django_db_setup, django_db_blocker):
    """Five thousand finished jobs, then a thousand that run and two thousand that wait for fifteen of these each."""
    with django_db_blocker.unblock():
        emptied.anew()
        old = Sql("now() - n * interval '1 minute'")
        make_jobs(5000, State.SUCCEEDED, finished_at=old, enqueued_at=old, payload=AS_WIDE_AS_REAL_ONES)
        execute("ANALYZE turno.jobs, turno.job_dependencies")
        make_jobs(1000, State.PROCESSING, queue="parents")
        make_jobs(2000, State.SCHEDULED, waiting_for="parents")
        execute(
            "INSERT INTO turno.job_dependencies (child_id, parent_id) SELECT c.id, p.id "
            "FROM (SELECT id, row_number() OVER () AS n FROM turno.jobs WHERE waiting_for = 'parents') AS c "
            "JOIN (SELECT id, row_number() OVER () - 1 AS n FROM turno.jobs WHERE queue = 'parents') AS p "
            "ON (p.n - c.n + 2000) % 1000 < 15"
        )
        execute(
            "UPDATE turno.jobs AS j SET gate = d.parent_id FROM turno.job_dependencies AS d "
            "WHERE d.child_id = j.id AND j.id::text > '1'"
        )
    yield
    with django_db_blocker.unblock():
        emptied.anew()


def seen(sql, params, look):
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    return indexes_used(plan), tables_scanned(plan)


@LOOKS
@pytest.mark.parametrize("known", [False, True], ids=["statistics of before", "analyzed"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_finds_its_rows_by_its_index(statement, look, known, many_children, db):
    if known:
        execute("ANALYZE turno.jobs, turno.job_dependencies")  # rolled back with the test
    used, scanned = seen(*STATEMENTS[statement], look)
    assert scanned <= {"dead_letters"}
    assert used <= MEANT


@LOOKS
@pytest.mark.parametrize("statement", ["who has children", "the children", "what falls", *OF_RETENTION])
def test_one_job_with_nearly_all_the_children_spoils_no_other_jobs_plan(statement, look, many_children, db):
    """The statistics of its column speak of that job alone."""
    execute(
        "INSERT INTO turno.job_dependencies (child_id, parent_id) SELECT c.id, p.id FROM turno.jobs AS c "
        "JOIN (SELECT id FROM turno.jobs WHERE queue = 'parents' LIMIT 1) AS p ON p.id <> c.id ON CONFLICT DO NOTHING"
    )
    execute(
        "DELETE FROM turno.job_dependencies WHERE parent_id <> "
        "(SELECT parent_id FROM turno.job_dependencies GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)"
    )
    execute("ANALYZE turno.jobs, turno.job_dependencies")  # rolled back with the test
    _used, scanned = seen(*STATEMENTS[statement], look)
    assert "job_dependencies" not in scanned


@LOOKS
def test_an_insert_with_children_in_it_reads_no_table(look, many_children, db):
    _used, scanned = seen(INSERT, {"rows": "[]", "soon": 2.0, "broker": True}, look)
    assert "jobs" not in scanned
