"""No verb reads `jobs` from end to end: on a table of finished jobs each finds its rows by the index meant for it.

Both with the values in the text, as the web sends them, and as the plan without values that PostgreSQL may keep for
the engine's prepared statements.
"""

import json
import re
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connections

from jobs.states import FINAL, State
from jobs.transitions import pauses
from jobs.transitions.begin import BEGIN
from jobs.transitions.circuits import PARK_NAMED, PARK_WAITING, RETURN, TRIP, TRIP_COLUMNS, WAKE
from jobs.transitions.claim import CLAIM_BY_ID, CLAIM_NEXT, LEFT_OUT
from jobs.transitions.expire import EXPIRED
from jobs.transitions.finish import FINISH, given
from jobs.transitions.notes import NOTE
from jobs.transitions.people import CANCEL, DELETE, LOCK, REQUEUE, RUN_NOW
from jobs.transitions.priorities import REPRIORITISE
from jobs.transitions.probes import PROBE, STALE
from jobs.transitions.promote import NEXT_DUE, PROMOTE
from jobs.transitions.purge import DELETE as DELETE_OLD
from jobs.transitions.purge import HISTORY, HOLD, LOOK, STILL, UNLINK
from jobs.transitions.renew import CANCELS, MINE, RENEW, STILL_MINE
from jobs.transitions.settle import DISCARD, LEFT, OWN_END
from jobs.transitions.sql import arrays
from jobs.transitions.take_back import TAKE_BACK
from tests.database.explain import Plan, indexes_used, nodes, tables_scanned
from tests.kit import emptied
from tests.transitions.edges import CALLER, Case, Fence, claimant, ending
from tests.transitions.rows import Made, Sql, ahead, execute, make_jobs

pytestmark = pytest.mark.django_db
FINISHED = 20_000
SMALL = {
    "pauses", "circuits", "workers", "dead_letters", "metrics_minute", "unserved_types", "job_types", "rates",
    "job_dependencies",
}  # fmt: skip


@pytest.fixture(scope="module")
def many_jobs(django_db_setup, django_db_blocker):
    """Twenty thousand finished jobs with their executions, a few hundred active ones, and statistics about them."""
    with django_db_blocker.unblock():
        emptied.anew()
        old = Sql("now() - n * interval '1 minute'")
        for n, state in enumerate(sorted(FINAL)):
            share = FINISHED - 4000 if state is State.SUCCEEDED else 2000
            make_jobs(share, state, finished_at=old, type=Sql(f"'type.' || (n + {n}) % 40"), enqueued_at=old)
        make_jobs(200, State.ENQUEUED, queue=Sql("'queue-' || n % 3"), unique_key=Sql("'key-' || n"))
        make_jobs(100, State.SCHEDULED, run_at=ahead(60))
        make_jobs(100, State.SCHEDULED, waiting_for="circuit", gate=Sql("'type.' || n % 5"))
        make_jobs(
            100, State.PROCESSING, worker_id=Sql("('00000000-0000-0000-0000-' || lpad((n % 4)::text, 12, '0'))::uuid")
        )
        execute(
            "INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, execution) "
            "SELECT id, 'Processing', state, 'x', 1 FROM turno.jobs WHERE finished_at IS NOT NULL"
        )
        execute(
            "INSERT INTO turno.job_attempts (job_id, ordinal, attempt, counted, dispatch_id, worker_id, outcome, "
            "started_at, ended_at) SELECT id, 1, 1, true, dispatch_id, gen_random_uuid(), 'Succeeded', now(), now() "
            "FROM turno.jobs WHERE finished_at IS NOT NULL"
        )
        execute(
            "INSERT INTO turno.concurrency_keys (kind, value) SELECT 'key', n::text FROM generate_series(1, 500) AS n"
        )
        execute(
            "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id) "
            "SELECT k.id, j.place / 500 + 1, j.id, gen_random_uuid() FROM "
            "(SELECT id, row_number() OVER () - 1 AS place FROM turno.concurrency_keys) AS k JOIN "
            "(SELECT id, row_number() OVER () - 1 AS place FROM turno.jobs WHERE state = 'Succeeded' LIMIT 5000) AS j "
            "ON j.place % 500 = k.place"
        )
        execute(
            "ANALYZE turno.jobs, turno.job_attempts, turno.job_state_changes, turno.concurrency_keys, "
            "turno.concurrency_slots"
        )
    yield
    with django_db_blocker.unblock():
        emptied.anew()


# Running jobs are as few as there are slots: by their ids or all of one worker, either is right.
RUNNING = "jobs_pkey|jobs_of_worker|jobs_lease_order"
IDS = [uuid4() for _ in range(50)]
OWNER = claimant() | {"label": "{}", "lease": 60.0}
OFFER = {"queues": ["queue-1"] * 8 + ["queue-2"] * 4, "slots": list(range(12)), "types": ["type.1", "test.echo"]}
NAMED = {"ids": IDS, "tokens": IDS, "queues": ["default"] * 50}
REACHED = {"gate": ["type.1"] * 2, "queue": ["queue-1", "queue-2"]}
GATES = {"types": ["type.1", "type.2"], "probes": IDS[:1]}
MET = {"scopes": ["type", "tag"], "values": ["type.1", "x"]}
PERSON = {"actor": "ana", "reason": "late"}
FENCE = {"id": IDS, "dispatch_id": IDS, "worker_id": CALLER}
END = ending(Case("processing", Fence.RIGHT, Made(IDS[0], IDS[0], CALLER, "q", "t")), State.SUCCEEDED)


def ends():
    """The parameters of FINISH for all IDS."""
    return given([(CALLER, replace(END, id=id_)) for id_ in IDS]) | {"broker": True}


OLD = {
    "state": "Succeeded", "age": 7 * 86400.0, "letters": 1e6, "ended": "-infinity", "after": uuid4(), "looked_at": 5000,
    "limit": 500, "ids": [uuid4() for _ in range(50)], "rows": 5000,
}  # fmt: skip
STATEMENTS = (
    {
        "claim_next": (CLAIM_NEXT, OWNER | OFFER, {"jobs_claim_order", "jobs_pkey"}),
        "claim": (
            CLAIM_BY_ID,
            OWNER | NAMED | {"slots": list(range(50)), "types": ["test.echo"]},
            {"jobs_pkey"},
        ),
        "what a claim left out": (LEFT_OUT, NAMED, {"jobs_pkey"}),
        "promote": (PROMOTE, {"limit": 200, "broker": True}, {"jobs_due_order", "jobs_pkey"}),
        "next_due": (NEXT_DUE, {}, {"jobs_due_order"}),
        "expire": (EXPIRED, {"grace": 15.0, "limit": 200, "refused": []}, {"jobs_lease_order"}),
        "take_back": (TAKE_BACK, {"worker_id": CALLER, "limit": 200, "refused": []}, {"jobs_of_worker"}),
        "strays": (MINE, {"worker_id": CALLER, "known": IDS}, {"jobs_of_worker"}),
        "cancels": (CANCELS, {"worker_id": CALLER}, {"jobs_of_worker"}),
        "renew": (RENEW, FENCE | {"lease": 60.0}, {RUNNING}),
        "renew's second look": (STILL_MINE, FENCE, {RUNNING}),
        "begin": (BEGIN, FENCE | {"begun": True}, {RUNNING}),
        "note": (NOTE, FENCE | {"progress": [1] * 50, "stage": ["x"] * 50}, {RUNNING}),
        "finish": (FINISH, ends(), {RUNNING}),
        "settle's look for its own end": (
            OWN_END,
            {"tokens": IDS, "worker_id": CALLER},
            {"attempts_one_dispatch", "changes_of_job"},
        ),
        "discard": (DISCARD, {"tokens": IDS, "worker_id": CALLER}, {"attempts_one_dispatch"}),
        "release": (LEFT, {"ids": IDS, "tokens": IDS, "worker_id": CALLER}, {RUNNING}),
        "the lock of what people do": (LOCK, {"ids": IDS}, {"jobs_pkey"}),
        "cancel": (CANCEL, PERSON | {"waiting": IDS, "running": IDS}, {"jobs_pkey"}),
        "requeue": (REQUEUE, {"ids": IDS, "actor": "ana", "broker": True}, {"jobs_pkey", "jobs_one_active_unique_key"}),
        "run_now": (RUN_NOW, {"ids": IDS, "actor": "ana", "broker": True}, {"jobs_pkey"}),
        "delete": (DELETE, {"ids": IDS}, {"jobs_pkey"}),
        "trip": (TRIP, arrays(TRIP_COLUMNS, [("type.1", 10, 5, 30.0, 30.0, 30.0)] * 3), set()),
        "park what a message named": (PARK_NAMED, NAMED | GATES, {"jobs_pkey"}),
        "park what waits": (
            PARK_WAITING,
            GATES | REACHED | {"limit": 200, "head": 200},
            {"jobs_claim_order", "jobs_pkey"},
        ),
        "reprioritise": (REPRIORITISE, {"ids": IDS, "priority": 3, "broker": True}, {"jobs_pkey"}),
        "pauses that messages meet": (pauses.LOCK_NAMED, {"ids": IDS}, {"jobs_pkey"}),
        "park what a message named at a pause": (pauses.PARK_NAMED, NAMED | MET, {"jobs_pkey"}),
        "pauses that heads meet": (pauses.LOCK_HEADS, {"head": 200, "silent": 15.0}, {"jobs_claim_order"}),
        "park what waits at a pause": (
            pauses.PARK_HEADS,
            MET | {"head": 200, "silent": 15.0, "limit": 200},
            {"jobs_claim_order", "jobs_pkey"},
        ),
        "wake what a pause held back": (
            pauses.WAKE,
            {"gates": ["type:a", "tag:b"], "limit": 1000, "broker": True},
            {"jobs_gate_order", "jobs_pkey"},
        ),
        "what a pause left behind": (pauses.LEFT_BEHIND, {"most": 100}, {"jobs_gate_order"}),
        "stale probes": (STALE, {"queues": ["queue-1"]}, {"jobs_pkey"}),
        "probe": (
            PROBE,
            REACHED | {"type": ["type.1"], "timeout": [60.0], "patience": 30.0, "broker": True},
            {"jobs_circuit_order", "jobs_pkey"},
        ),
        "wake": (WAKE, {"limit": 200, "types": None, "broker": True}, {"jobs_circuit_order", "jobs_pkey"}),
        "return": (
            RETURN,
            {"silent": 15.0, "unwatched": 60.0, "since": 15.0, "limit": 200, "broker": True},
            {"jobs_circuit_order", "jobs_pkey"},
        ),
    }
    | {f"retention's look {state}": (LOOK.format(state=state), OLD, {"jobs_finished_order"}) for state in sorted(FINAL)}
    | {
        "retention's lock": (HOLD, OLD, {"jobs_pkey"}),
        "retention's second look": (STILL, OLD, {"jobs_pkey"}),
        "retention's changes": (HISTORY["job_state_changes"], OLD, {"changes_of_job"}),
        "retention's attempts": (HISTORY["job_attempts"], OLD, {"attempts_one_ordinal"}),
        "retention's dependencies": (UNLINK, OLD, set()),
        "retention's delete": (DELETE_OLD, OLD, {"jobs_pkey"}),
    }
)


def plan_with_values(cursor, sql, params) -> Plan:
    """The plan of the statement with its values in the text."""
    cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
    return first(cursor)


def plan_without_values(cursor, sql, params) -> Plan:
    """The plan that a prepared statement keeps for all values."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", sql)
    cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    cursor.execute("DEALLOCATE ALL")
    cursor.execute(f"PREPARE planned AS {numbered}")
    values = f"({', '.join(f'%({name})s' for name in names)})" if names else ""
    cursor.execute(f"EXPLAIN (FORMAT JSON) EXECUTE planned{values}", params)
    return first(cursor)


def first(cursor) -> Plan:
    answer = cursor.fetchone()[0]
    return (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_finds_its_rows_by_its_index(statement, look, many_jobs, db):
    sql, params, indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    used = indexes_used(plan)
    assert all(used & set(name.split("|")) for name in indexes), used
    assert tables_scanned(plan) <= SMALL


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", ["claim", "what a claim left out"])
def test_what_messages_name_is_found_by_id_also_while_there_are_no_statistics_of_the_backlog(
    statement, look, many_jobs, db
):
    make_jobs(5000)
    execute("DELETE FROM pg_statistic WHERE starelid = 'turno.jobs'::regclass")  # rolled back with the test
    sql, params, _indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert indexes_used(plan) <= {"jobs_pkey", "pauses_one_target", "circuits_pkey"}
    assert tables_scanned(plan) <= SMALL


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_each_end_is_looked_up_and_none_compared_with_every_job_of_the_batch(known, look, many_jobs, db):
    """Two joins that compared each with each cost more than all that the statement writes."""
    if not known:
        make_jobs(5000, State.PROCESSING)
        execute("DELETE FROM pg_statistic WHERE starelid = 'turno.jobs'::regclass")  # rolled back with the test
    sql, params, _indexes = STATEMENTS["finish"]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert {name for name in indexes_used(plan) if name.startswith("jobs_")} == {"jobs_pkey"}
    looked_up = [node for node in nodes(plan) if node.get("Index Name") == "jobs_pkey"]
    assert len(looked_up) == 2, "one lookup for the lock, one for the change"
    assert all("ANY" not in node["Index Cond"] for node in looked_up)


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", ["wake", "probe", "return"])
def test_what_waits_for_a_breaker_is_found_by_its_type_also_while_the_statistics_know_of_none(
    statement, look, many_jobs, db
):
    """Ten thousand are parked within seconds: the statistics come later, and a pass over all for each batch is long."""
    make_jobs(5000, State.SCHEDULED, waiting_for="circuit", gate="type.1", type="type.1", queue="queue-1")
    execute("DELETE FROM pg_statistic WHERE starelid = 'turno.jobs'::regclass")  # rolled back with the test
    sql, params, _indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    on_jobs = {name for name in indexes_used(plan) if name.startswith("jobs_")}
    assert on_jobs == {"jobs_circuit_order", "jobs_pkey"}
    assert tables_scanned(plan) <= SMALL


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", ["wake what a pause held back", "what a pause left behind"])
def test_what_waits_for_a_pause_is_found_by_its_gate_also_while_the_statistics_know_of_none(
    statement, look, many_jobs, db
):
    make_jobs(5000, State.SCHEDULED, waiting_for="pause", gate="type:a", type="a", queue="queue-1")
    execute("DELETE FROM pg_statistic WHERE starelid = 'turno.jobs'::regclass")  # rolled back with the test
    sql, params, _indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert {name for name in indexes_used(plan) if name.startswith("jobs_")} <= {"jobs_gate_order", "jobs_pkey"}
    assert tables_scanned(plan) <= SMALL


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize("statement", ["finish", "renew", "renew's second look", "begin", "note"])
def test_what_workers_say_of_their_jobs_finds_them_by_id_also_while_the_statistics_know_of_none_that_runs(
    statement, look, many_jobs, db
):
    """Each of the thousands that run in a large house would be compared with each job of a batch."""
    execute("DELETE FROM turno.jobs WHERE state = 'Processing'")
    execute("ANALYZE turno.jobs")  # rolled back with the test
    make_jobs(5000, State.PROCESSING)
    sql, params, _indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    assert {name for name in indexes_used(plan) if name.startswith("jobs_")} == {"jobs_pkey"}
    assert tables_scanned(plan) <= SMALL
