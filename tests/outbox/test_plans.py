"""On large tables each statement of the way to the broker finds its rows by the index meant for it.

With the values in the text, as the web sends them, and as the plan that PostgreSQL may keep for prepared statements.
"""

from uuid import uuid4

import pytest
from django.db import connections

from jobs.bounds import DEAD_LETTER
from jobs.queries.outbox import OUTBOX
from jobs.states import FINAL, State
from jobs.transitions.outbox import CONFIRM, LEASE, POSTPONE, RETURN
from jobs.transitions.park import DEFER
from jobs.transitions.reannounce import COUNT, NAMED, OLDEST, WAITING_QUEUES
from jobs.transitions.unknown import FAIL, OPEN_UNKNOWN, OVER, PARK_UNKNOWN, PARK_UNSERVED, SEEN, WATCH
from tests.database.explain import indexes_used, nodes, tables_scanned
from tests.kit import emptied
from tests.transitions.rows import Sql, execute, make_jobs, make_worker
from tests.transitions.test_plans import plan_with_values, plan_without_values

pytestmark = pytest.mark.django_db
SMALL = {"workers", "pauses", "unserved_types", "job_types", "rates"}
IDS = [uuid4() for _ in range(50)]
ROWS = list(range(1000, 1200))
LOCK = uuid4()
PAIRS = {"ids": IDS, "tokens": IDS}
MESSAGES = """
INSERT INTO turno.outbox_messages (job_id, dispatch_id, queue, lock_id, locked_until, failures)
SELECT id, gen_random_uuid(), queue, CASE WHEN n % 4 = 1 THEN gen_random_uuid() END,
    CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN now() + n * interval '1 second' WHEN 2 THEN now() - interval '1 second' END,
    CASE WHEN n % 4 = 1 THEN 1 ELSE 0 END
FROM (SELECT id, queue, row_number() OVER (ORDER BY id) AS n FROM turno.jobs WHERE finished_at IS NOT NULL) AS made
"""


UNSERVED = """
INSERT INTO turno.unserved_types (queue, type, since)
SELECT queue, type, now() - interval '1 day'
FROM (VALUES ('default'), ('queue-1')) AS q(queue), (SELECT 'type.' || n AS type FROM generate_series(3, 49) AS n) AS t
"""
WATCHED = {"silent": 15.0, "unwatched": 45.0}
OF_ONE = {"id": IDS, "letter_id": IDS, "message": ["m"] * 50, "fingerprint": ["f"] * 50, "error_type": "E"}


@pytest.fixture(scope="module")
def long_outbox(django_db_setup, django_db_blocker):
    """Twelve thousand finished jobs and as many messages, some thousand waiting and parked ones, and statistics."""
    with django_db_blocker.unblock():
        emptied.anew()
        old = Sql("now() - n * interval '1 second'")
        for state in sorted(FINAL):
            make_jobs(4000, state, finished_at=old, enqueued_at=old)
        make_jobs(2000, queue=Sql("'queue-' || n % 3"), enqueued_at=old, announced_at=old, priority=Sql("n % 21 - 10"))
        make_jobs(2000, State.SCHEDULED, waiting_for="unknown_type", gate=Sql("'type.' || n % 50"))
        make_jobs(500, State.SCHEDULED, waiting_for="circuit", gate=Sql("'type.' || n % 5"))
        make_worker(queues={"default": 2, "queue-1": 1}, types=["type.1", "type.2"])
        execute(UNSERVED)
        execute(MESSAGES)
        execute("ANALYZE turno.jobs, turno.outbox_messages, turno.workers")
    yield
    with django_db_blocker.unblock():
        emptied.anew()


STATEMENTS = {
    "lease": (LEASE, {"limit": 200, "lock_id": LOCK, "lease": 60.0}, {"outbox_lease_order", "outbox_messages_pkey"}),
    "confirm": (CONFIRM, {"ids": ROWS, "lock_id": LOCK}, {"outbox_messages_pkey", "jobs_pkey"}),
    "postpone": (
        POSTPONE,
        {"ids": ROWS, "errors": ["no"] * 200, "lock_id": LOCK, "base": 2.0, "cap": 300.0, "doublings": 8},
        {"outbox_messages_pkey"},
    ),
    "return": (RETURN, {"ids": ROWS, "lock_id": LOCK}, {"outbox_messages_pkey"}),
    "defer": (DEFER, PAIRS | {"wait": 1.0}, {"jobs_pkey"}),
    "park": (PARK_UNKNOWN, PAIRS, {"jobs_pkey"}),
    "park's note of the type": (SEEN, {"ids": IDS}, {"jobs_pkey"}),
    "watch": (WATCH, WATCHED | {"types": 500, "head": 200}, {"jobs_unknown_order", "jobs_claim_order"}),
    "park the head": (
        PARK_UNSERVED,
        WATCHED | {"since": 15.0, "head": 200, "limit": 200},
        {"jobs_claim_order", "jobs_pkey"},
    ),
    "the grace is over": (OVER, WATCHED | {"since": 3600.0, "limit": 200}, {"jobs_unknown_order", "jobs_pkey"}),
    "fail": (FAIL, OF_ONE | {"broker": True}, {"jobs_pkey"}),
    "open": (
        OPEN_UNKNOWN,
        {"limit": 200, "silent": 15.0, "broker": True, "rest": 60.0},
        {"jobs_unknown_order", "jobs_pkey"},
    ),
    "queues": (WAITING_QUEUES, {"queues": 500}, {"jobs_claim_order"}),
    "count": (COUNT, {"queue": "queue-1", "age": 10.0, "most": 500}, {"jobs_claim_order"}),
    "reannounce the oldest": (
        OLDEST,
        {"queue": "queue-1", "age": 10.0, "limit": 200, "broker": True},
        {"jobs_claim_order", "jobs_pkey"},
    ),
    "reannounce": (NAMED, PAIRS | {"broker": True}, {"jobs_pkey"}),
}


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_finds_its_rows_by_its_index(statement, look, long_outbox, db):
    sql, params, indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert indexes <= indexes_used(plan)
    assert tables_scanned(plan) <= SMALL


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
def test_the_figures_read_the_oldest_messages_alone(look, long_outbox, db):
    with connections["default"].cursor() as cursor:
        plan = look(cursor, OUTBOX, {"most": 101, "letters": DEAD_LETTER})
    assert indexes_used(plan) == {"outbox_messages_pkey"}
    assert tables_scanned(plan) == set()


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", ["watch", "park the head", "the grace is over", "open"])
def test_looks_at_unknown_types_walk_their_indexes_also_while_statistics_are_older_than_the_backlog(
    statement, look, long_outbox, db
):
    make_jobs(5000, queue="queue-1", type="type.9")  # rolled back with the test
    make_jobs(5000, State.SCHEDULED, waiting_for="unknown_type", gate="type.9", type="type.9")
    sql, params, indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    used = {name for name in indexes_used(plan) if name.startswith("jobs_")}
    assert indexes <= used <= {"jobs_claim_order", "jobs_unknown_order", "jobs_pkey"}
    assert tables_scanned(plan) <= SMALL
    whole = {node["Index Name"] for node in nodes(plan) if node["Node Type"] == "Bitmap Index Scan"}
    # Others give rows in order, and are left once there are enough.
    assert whole <= {"jobs_pkey", "pauses_one_target", "slots_one_a_job", "changes_of_job"}
