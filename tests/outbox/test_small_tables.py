"""In a table that is small enough to be read from end to end, no statement compares each job with each message."""

import json
from uuid import uuid4

import pytest
from django.db import connections

from jobs.transitions.claim import CLAIM_BY_ID, LEFT_OUT
from jobs.transitions.outbox import CONFIRM
from jobs.transitions.park import DEFER
from jobs.transitions.reannounce import NAMED
from jobs.transitions.unknown import PARK_UNKNOWN
from tests.database.explain import nodes
from tests.transitions.edges import claimant
from tests.transitions.rows import execute, make_jobs, select

pytestmark = pytest.mark.django_db
JOBS, BATCH = 4000, 100
LOCK = uuid4()
CLAIM = claimant() | {"label": "{}", "lease": 60.0, "types": ["test.echo"], "slots": list(range(BATCH))}
STATEMENTS = {
    "claim": (CLAIM_BY_ID, CLAIM | {"queues": ["default"] * BATCH}),
    "what a claim left out": (LEFT_OUT, {"queues": ["default"] * BATCH}),
    "defer": (DEFER, {"wait": 1.0}),
    "park": (PARK_UNKNOWN, {}),
    "reannounce": (NAMED, {"broker": True}),
    "confirm": (CONFIRM, {"lock_id": LOCK}),
}


@pytest.fixture
def named():
    """The ids and tokens of a hundred of some thousand waiting jobs, all of which have a leased message."""
    make_jobs(JOBS)
    execute(
        "INSERT INTO turno.outbox_messages (job_id, dispatch_id, queue, lock_id, locked_until) "
        "SELECT id, dispatch_id, queue, %s, now() + interval '1 minute' FROM turno.jobs",
        LOCK,
    )
    execute("ANALYZE turno.jobs, turno.outbox_messages")
    return select(
        "SELECT j.id, j.dispatch_id, o.id AS message FROM turno.jobs AS j JOIN turno.outbox_messages AS o "
        f"ON o.job_id = j.id ORDER BY j.dispatch_id LIMIT {BATCH}"
    )


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_rows_compared_are_those_that_are_named(statement, named):
    sql, params = STATEMENTS[statement]
    ids = [row["message"] if statement == "confirm" else row["id"] for row in named]
    with connections["default"].cursor() as cursor:
        given = params | {"ids": ids, "tokens": [row["dispatch_id"] for row in named]}
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", given)
        answer = cursor.fetchone()[0]
    [told] = json.loads(answer) if isinstance(answer, str) else answer
    compared = [node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"] for node in nodes(told["Plan"])]
    assert max(compared) <= BATCH**2
