"""Keys, limits and rates read neither jobs nor slots from end to end, also while the statistics know of nobody who
waits: a thousand are parked within a second, and each end looks for the next one.

The engine's statements are prepared: both plans, with their values and without.
"""

from importlib import import_module

import pytest
from django.db import connections

from jobs.states import State
from jobs.transitions import admission, finish, gatekeeper, handover, keys, limits, opening, successors
from jobs.transitions.insert import INSERT
from jobs.transitions.keyring import FORGET, FORGOTTEN
from tests.database.explain import indexes_used, tables_scanned
from tests.kit import emptied
from tests.transitions.edges import CALLER
from tests.transitions.rows import Sql, execute, make_jobs
from tests.transitions.test_plans import IDS, OWNER, plan_with_values, plan_without_values

pytestmark = pytest.mark.django_db
# Modules whose names their verbs hide.
expire, take_back = (import_module(f"jobs.transitions.{name}") for name in ("expire", "take_back"))
FINISHED = 10_000
RUNNING = "jobs_lease_order|jobs_of_worker|jobs_by_state"
TABLES = "turno.jobs, turno.concurrency_keys, turno.concurrency_slots"
# A few rows each; concurrency_keys has its own say below.
SMALL = {"pauses", "circuits", "workers", "job_types", "rates"}
NAMES = {"kind": ["key"] * 3, "value": ["key-1", "key-2", "none"]}
HELD = {"id": IDS, "token": IDS}
FEW = {"keys": [1, 2, 3], "depth": 5, "seen": []}
SLOTS = {"job": IDS[:2], "held_by": IDS[:2], "key": [1, 2], "number": [1, 1]}
PARKS = {"id": IDS, "waiting_for": ["concurrency_key"] * 50, "gate": ["key-1"] * 50}
FULL = {"key": [1], "value": ["key-1"], "least": [1], "rest": admission.REST}
STATEMENTS = {
    "missing keys": (keys.MISSING, NAMES, set()),
    "the lock of keys": (keys.LOCK, NAMES, set()),
    "the ids of keys": (keys.FIND, NAMES, set()),
    "the names of keys": (keys.NAMES, {"ids": [1, 2]}, set()),
    "the keys of slots": (keys.LOCK_HELD, HELD, {"slots_one_a_job"}),
    "the keys of who waits": (keys.LOCK_WAITING, {"ids": IDS}, {"slots_one_a_job", "jobs_pkey"}),
    "the keys of who is overdue": (
        expire.LOCK_KEYS,
        {"grace": 15.0, "limit": 200},
        {RUNNING},
    ),
    "the keys of who is left behind": (
        take_back.LOCK_KEYS,
        {"worker_id": CALLER, "limit": 200},
        {"slots_one_a_job", RUNNING},
    ),
    "release": (keys.RELEASE, {"ids": IDS}, {"slots_one_a_job"}),
    "slots that were left behind": (finish.SLOTS_LEFT, {"ended": IDS, "tokens": IDS}, {"slots_one_a_job"}),
    "wake": (
        keys.WAKE,
        {"id": IDS, "token": IDS, "admitted": [True] * 50, "broker": True} | SLOTS,
        {"jobs_pkey"},
    ),
    "who is about to take a slot": (handover.COMING, {"keys": [1, 2]}, {"jobs_key_waiting", "slots_one_holder"}),
    "who starts with an end": (
        successors.SUCCEED,
        OWNER
        | SLOTS
        | {"id": IDS, "token": IDS, "types": ["limited", "type.1"]}
        | {"queue": ["default"] * 3, "seat": [1, 2, 3], "room": [100] * 3},
        {"jobs_pkey", "jobs_claim_order"},
    ),
    "a look at who waits": (handover.PEEK, FEW, {"jobs_gate_order"}),
    "the next who waits": (handover.NEXT, FEW, {"jobs_gate_order"}),
    "where there is room": (
        handover.WITH_ROOM,
        {"keys": [1, 2], "depth": 200},
        {"jobs_gate_order", "slots_one_holder"},
    ),
    "where somebody waits": (handover.WAITED_AT, NAMES, {"jobs_gate_order"}),
    "to another gate": (handover.MOVE, PARKS, {"jobs_pkey"}),
    "who still is Enqueued": (admission.STILL_ENQUEUED, HELD, {"jobs_pkey"}),
    "who still is parked": (admission.STILL_PARKED, {"id": IDS}, {"jobs_pkey"}),
    "start": (admission.START, OWNER | {"id": IDS, "slot": list(range(50))}, {"jobs_pkey"}),
    "park": (admission.PARK, PARKS | FULL, {"jobs_key_waiting", "jobs_pkey", "slots_one_a_job"}),
    "who waits for a rate": (
        admission.WAITING_FOR_RATE,
        {"type": "rated", "limit": 100},
        {"jobs_gate_order"},
    ),
    "what is taken": (gatekeeper.TAKEN, {"keys": [1, 2, 3]}, {"slots_one_holder"}),
    "who was woken for a rate": (gatekeeper.PROMISED, {"types": ["rated", "none"]}, {"jobs_woken"}),
    "a walk along keys": (
        opening.WALK_KEYS,
        {"after": "key-1", "walk": opening.WALK, "age": 3.0},
        {"jobs_gate_order", "slots_one_holder"},
    ),
    "a walk along types": (opening.WALK_TYPES, {"age": 3.0}, {"jobs_gate_order"}),
    "a walk along rates": (opening.RATED, {}, {"jobs_gate_order"}),
    "who was woken for nobody": (
        opening.IDLE,
        {"limit": 100, "silent": 60.0, "broker": True},
        {"jobs_pkey", "slots_one_a_job"},
    ),
    "the lock of who runs": (limits.LOCK_RUNNING, {"type": "limited"}, set()),
    "seat who runs": (limits.SEAT_RUNNING, {"key": 1, "type": "limited"}, set()),
    "who runs without a seat": (limits.UNSEATED, {}, set()),
    "forget keys": (
        FORGET,
        {"age": 3600.0, "limit": 500, "looked_at": 5000, "start": 0},
        {"jobs_gate_order", "jobs_key_waiting"},
    ),
    "forget keys that are locked": (FORGOTTEN, {"ids": [1, 2]}, {"jobs_gate_order", "jobs_key_waiting"}),
}
# All slots are read where all slots are asked about, and no more of them are there than can run.
ALL_SLOTS = {"who was woken for nobody", "stale slots", "the keys of who is overdue"}
STATEMENTS["stale slots"] = (opening.STALE, {}, {"jobs_pkey"})
# Processing jobs are as few as there are slots: by any index of theirs, or of states.
MEANT = {
    "jobs_pkey", "jobs_gate_order", "jobs_key_waiting", "jobs_of_worker", "jobs_lease_order", "jobs_by_state",
    "jobs_woken", "jobs_claim_order", "slots_one_holder", "slots_one_a_job",
}  # fmt: skip
LOOKS = pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])


@pytest.fixture(scope="module")
def many_gates(django_db_setup, django_db_blocker):
    """Finished jobs and their statistics; then six thousand that wait at three hundred keys, thousands elsewhere."""
    with django_db_blocker.unblock():
        emptied.anew()
        old = Sql("now() - n * interval '1 minute'")
        make_jobs(
            FINISHED, State.SUCCEEDED, finished_at=old, enqueued_at=old, type=Sql("'type.' || n % 40"),
            concurrency_key=Sql("'key-' || n % 300"), concurrency_limit=1,
        )  # fmt: skip
        # The keys of today, those of before that retention has not met yet, and slots: ten thousand in use.
        execute(
            "INSERT INTO turno.concurrency_keys (kind, value) SELECT 'key', 'key-' || n FROM generate_series(0, 3000) n"
        )
        execute(
            "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id, taken_at) "
            "SELECT k.id, (j.place / 2000)::int + 1, j.id, gen_random_uuid(), now() - interval '1 hour' FROM "
            "(SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM turno.concurrency_keys) AS k JOIN "
            "(SELECT id, row_number() OVER () - 1 AS place FROM turno.jobs) AS j ON j.place % 2000 = k.place"
        )
        execute(f"ANALYZE {TABLES}")
        key = {"concurrency_key": Sql("'key-' || n % 300"), "concurrency_limit": 1}
        make_jobs(6000, State.SCHEDULED, waiting_for="concurrency_key", gate=Sql("'key-' || n % 300"), **key)
        make_jobs(300, State.PROCESSING, **key)
        make_jobs(2000, State.SCHEDULED, waiting_for="type_limit", gate="limited", type="limited")
        make_jobs(1000, State.SCHEDULED, waiting_for="rate", gate="rated", type="rated")
        make_jobs(2000, **key)
        execute("INSERT INTO turno.job_types (name, max_running) VALUES ('limited', 3)")
        execute("INSERT INTO turno.rates (type, allowed, \"window\") VALUES ('rated', 3, 60)")
    yield
    with django_db_blocker.unblock():
        emptied.anew()


@pytest.fixture(scope="module", params=["statistics of before", "analyzed"])
def known(request, many_gates, django_db_blocker):
    """What the planner knows of them."""
    if request.param == "analyzed":
        with django_db_blocker.unblock():
            execute(f"ANALYZE {TABLES}")


@LOOKS
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_of_the_gates_finds_its_rows_by_its_index(statement, look, known, db):
    sql, params, indexes = STATEMENTS[statement]
    with connections["default"].cursor() as cursor:
        plan = look(cursor, sql, params)
    used = indexes_used(plan)
    assert all(used & set(name.split("|")) for name in indexes), used
    assert {name for name in used if name.startswith(("jobs_", "slots_"))} <= MEANT
    assert tables_scanned(plan) - SMALL <= ({"concurrency_slots"} if statement in ALL_SLOTS else set())


@LOOKS
def test_an_insert_looks_at_gates_by_their_index(look, known, db):
    with connections["default"].cursor() as cursor:
        plan = look(cursor, INSERT, {"rows": "[]", "soon": 2.0, "broker": True})
    assert "jobs_gate_order" in indexes_used(plan)
    assert "jobs" not in tables_scanned(plan)
