"""No read goes through a table that grows: on tables of finished work each finds its rows by an index."""

import sys

import pytest

import jobs.queries
from jobs.queries import LetterFilter
from jobs.queries.causes import CAUSES, COUNTS, TABS
from jobs.queries.circuits import CIRCUITS
from jobs.queries.durations import DURATIONS
from jobs.queries.figures import CAUSES as CAUSES_OF_STATS
from jobs.queries.figures import DAY, HOUR, NOW, OLDEST
from jobs.queries.fleet import FIGURES
from jobs.queries.letters import LETTERS
from jobs.queries.rhythm import RHYTHM
from jobs.queries.unserved import UNSERVED
from jobs.queuewalk import ALL
from tests.database.explain import indexes_used, plan_of, tables_scanned
from tests.kit import emptied
from tests.transitions.rows import Sql, ahead, execute, make_jobs

pytestmark = pytest.mark.django_db
SMALL = {"pauses", "circuits", "queues", "unserved_types"}
BOARD, DEPTHS, ATTENTION, QUEUES = (
    sys.modules[f"{jobs.queries.__name__}.{name}"] for name in ("board", "depths", "attention", "queues")
)
LETTERS_MADE = """
INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, error_message, stack, fingerprint, attempts,
    created_at, resolved_at, resolved_how)
SELECT gen_random_uuid(), id, type, queue, 'error', 'no ' || n,
    (SELECT string_agg(md5(n::text || line), '') FROM generate_series(1, 45) AS line), 'cause-' || n % 200, 1,
    now() - n * interval '1 minute',
    CASE WHEN n > 2000 THEN now() END, CASE WHEN n > 2000 THEN (ARRAY['requeued', 'discarded'])[1 + n % 2] END
FROM (SELECT id, type, queue, row_number() OVER () AS n FROM turno.jobs WHERE state = 'Failed') AS failed
"""
ATTEMPTS_MADE = """
INSERT INTO turno.job_attempts (job_id, ordinal, attempt, counted, dispatch_id, started_at, ended_at, outcome)
SELECT id, 1, 1, true, gen_random_uuid(), now(), now(), 'Failed' FROM turno.jobs WHERE state = 'Failed'
"""
MINUTES_MADE = """
INSERT INTO turno.metrics_minute (minute, worker_id, queue, type, succeeded, durations)
SELECT date_trunc('minute', now()) - n * interval '1 minute', gen_random_uuid(), 'default', 'type.' || w, 1,
    array_fill(1, ARRAY[16])
FROM generate_series(0, 14999) AS n, generate_series(1, 2) AS w
"""
WORKERS_MADE = """
INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state, seen_at)
SELECT gen_random_uuid(), 'w-' || n, 'h', n::text, '1', 1, '1', '1', '{"default": 4}',
    CASE WHEN n > 20 THEN 'Offline' ELSE 'Online' END, now() - CASE WHEN n > 20 THEN n ELSE 0 END * interval '1 minute'
FROM generate_series(1, 3000) AS n
"""
UNSERVED_MADE = """
INSERT INTO turno.unserved_types (queue, type, since)
SELECT 'default', 'type.' || n, now() - interval '1 day' FROM generate_series(0, 50) AS n
"""
PAUSES_MADE = "INSERT INTO turno.pauses (scope, value) SELECT 'tag', n::text FROM generate_series(1, 50) AS n"


@pytest.fixture(scope="module")
def old_house(django_db_setup, django_db_blocker):
    """Twenty thousand finished jobs, ten thousand dead letters, ten days of minutes, and a few hundred active jobs."""
    with django_db_blocker.unblock():
        emptied.anew()
        old = Sql("now() - n * interval '1 minute'")
        make_jobs(10_000, "Succeeded", finished_at=old)
        make_jobs(10_000, "Failed", finished_at=old, type=Sql("'type.' || n % 40"))
        make_jobs(300, queue=Sql("'queue-' || n % 3"))
        make_jobs(100, "Scheduled", run_at=ahead(60))
        make_jobs(100, "Scheduled", waiting_for="circuit", gate=Sql("'type.' || n % 5"))
        make_jobs(100, "Scheduled", waiting_for="unknown_type", gate=Sql("'type.' || n % 5"))
        make_jobs(20, "Scheduled", lost_count=2)
        make_jobs(200, "Processing")
        for statement in (LETTERS_MADE, ATTEMPTS_MADE, MINUTES_MADE, WORKERS_MADE, UNSERVED_MADE, PAUSES_MADE):
            execute(statement)
        execute(
            "ANALYZE turno.jobs, turno.dead_letters, turno.job_attempts, turno.metrics_minute, turno.workers, "
            "turno.pauses"
        )
    yield
    with django_db_blocker.unblock():
        emptied.anew()


MOST = {"most": 101}  # as small beside these tables as the real bound is beside those of a house that needs it
CAUSES_ASKED = {"most": 100_001, "causes": 5000, "size": 51, "offset": 0}
TIMES = {"lease": 60.0, "silent": 15.0, "grace": 15.0}
PROCESSING = "jobs_lease_order|jobs_of_worker"
PENDING = "dead_letters_causes|dead_letters_by_cause|dead_letters_pending|dead_letters_one_pending"
RESOLVED = "dead_letters_resolved|dead_letters_resolved_causes"
PAGE = {"cause": "cause-7", "at": None, "id": None, "size": 51, "preview": 160, "fields": 6, "value": 61}


def of_tab(tab: str) -> str:
    return "dead_letters_causes" if tab == "pending" else "dead_letters_resolved_causes"


STATEMENTS = {
    "stats: now": (NOW, MOST, {"jobs_claim_order", "jobs_due_order", "jobs_parked_order", PROCESSING, PENDING}),
    "stats: the oldest": (OLDEST, {"queues": ALL}, {"jobs_claim_order"}),
    "circuits": (CIRCUITS, {"type": None, "limit": 20, "most": 1000, "idle": False}, {"jobs_circuit_order"}),
    "stats: causes": (CAUSES_OF_STATS, {"most": 1001}, {PENDING}),
    "stats: the hour": (HOUR, {}, {"metrics_one_row"}),
    "stats: the day": (DAY, {}, {"metrics_one_row"}),
    "rhythm": (RHYTHM, {"minutes": 60}, {"metrics_one_row"}),
    "durations": (DURATIONS, {"rows": 20_000}, {"metrics_one_row"}),
    "worker figures": (FIGURES, {}, {"metrics_one_row|metrics_of_workers"}),
    "board: what runs": (BOARD.RUNNING, TIMES | {"limit": 20_001}, {PROCESSING}),
    "board: workers": (
        BOARD.WORKERS,
        TIMES | {"limit": 501, "owners": []},
        {"workers_by_sign_of_life|workers_one_live_identity"},
    ),
    "depths: waiting": (DEPTHS.WAITING, MOST | {"queues": 500}, {"jobs_claim_order"}),
    "queues: what ended": (QUEUES.ENDED, {"minutes": 60}, {"metrics_one_row"}),
    "depths: parked": (DEPTHS.PARKED, MOST, {"jobs_parked_order"}),
    "attention: unknown types": (
        UNSERVED,
        MOST | {"silent": 15.0, "unwatched": 45.0, "grace": 3600.0, "shown": 20},
        {"jobs_unknown_order"},
    ),
    "attention: suspects": (ATTENTION.SUSPECTS, {"each": 20}, {"jobs_suspect"}),
    "attention: causes": (
        ATTENTION.GREW,
        {"each": 20, "letters": 2000},
        {"dead_letters_by_age", "dead_letters_causes"},
    ),
    "letter counts": (COUNTS, MOST, {PENDING, RESOLVED}),
}
STATEMENTS |= {
    f"causes: {tab}, {order}{', filtered' if wanted.type else ''}": (sql, CAUSES_ASKED | wanted.params(), {of_tab(tab)})
    for (tab, order), sql in CAUSES.items()
    for wanted in (LetterFilter(), LetterFilter(type="type.7", queue="default", search="no 7"))
}
STATEMENTS |= {f"letters: {tab}": (LETTERS[tab], PAGE | LetterFilter().params(), {of_tab(tab)}) for tab in TABS}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_read_finds_its_rows_by_its_index(statement, old_house, db):
    sql, params, indexes = STATEMENTS[statement]
    plan = plan_of(sql, params)
    used = indexes_used(plan)
    assert all(used & set(name.split("|")) for name in indexes), used
    assert tables_scanned(plan) <= SMALL
