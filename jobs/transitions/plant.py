"""Rows as they are, past the verbs: the demonstration's, with a past of their own, and only into empty tables.

Every constraint holds for them as for all others, and nothing here changes a row that exists.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.transitions.outbox import broker, dispatch
from jobs.transitions.sql import fetch, in_transaction

CHUNK = 4000
JOB = (
    "id, type, queue, payload, state, priority, executions, attempts_used, max_attempts, lost_count, at_most_once, "
    "timeout, dispatch_id, claim_id, claimed_at, started_at, slot, worker_id, worker_label, lease_expires_at, "
    "progress, stage, result, error_type, error_message, failure_kind, run_at, not_before, waiting_for, gate, "
    "unique_key, origin, owner, tags, cancel_requested_at, cancel_requested_by, cancel_reason, created_at, "
    "enqueued_at, finished_at"
)
CHANGE = "job_id, from_state, to_state, at, reason, detail, worker_id, actor, execution"
ATTEMPT = (
    "job_id, ordinal, attempt, tries, counted, dispatch_id, worker_id, worker_name, worker_host, worker_pid, "
    "worker_version, slot, started_at, ended_at, duration, outcome, error_type, error_message, stack, exit_code, "
    "signal, peak_memory"
)
LOG = "job_id, execution, number, level, message, at"
LETTER = (
    "id, job_id, type, queue, failure_kind, error_type, error_message, stack, fingerprint, attempts, created_at, "
    "resolved_at, resolved_how, resolved_by"
)
WORKER = (
    "id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, types, state, started_at, seen_at, "
    "stopped_at, problems"
)
METRICS = (
    "minute, worker_id, queue, type, succeeded, failed, retried, cancelled, lost, duration_sum, wait_sum, durations"
)
PAUSE = "scope, value, reason, paused_by, until, created_at"
TYPE = "name, first_seen_at, last_served_at"
FROM = "FROM jsonb_populate_recordset(NULL::turno."
ROWS = "%(rows)s::jsonb)"
WORKERS = f"INSERT INTO turno.workers ({WORKER}) SELECT {WORKER} {FROM}workers, {ROWS}"
TYPES = f"INSERT INTO turno.job_types ({TYPE}) SELECT {TYPE} {FROM}job_types, {ROWS}"
PAUSES = f"INSERT INTO turno.pauses ({PAUSE}) SELECT {PAUSE} {FROM}pauses, {ROWS}"
JOBS = f"""
WITH planted AS (
    INSERT INTO turno.jobs ({JOB}) SELECT {JOB} {FROM}jobs, {ROWS}
    RETURNING id, state, dispatch_id, queue, priority
) {dispatch("planted")}
SELECT count(*) FROM planted
"""
CHANGES = f"INSERT INTO turno.job_state_changes ({CHANGE}) SELECT {CHANGE} {FROM}job_state_changes, {ROWS}"
ATTEMPTS = f"INSERT INTO turno.job_attempts ({ATTEMPT}) SELECT {ATTEMPT} {FROM}job_attempts, {ROWS}"
LOGS = f"INSERT INTO turno.job_logs ({LOG}) SELECT {LOG} {FROM}job_logs, {ROWS}"
LETTERS = f"INSERT INTO turno.dead_letters ({LETTER}) SELECT {LETTER} {FROM}dead_letters, {ROWS}"
MINUTES = f"INSERT INTO turno.metrics_minute ({METRICS}) SELECT {METRICS} {FROM}metrics_minute, {ROWS}"
LOCK = "LOCK TABLE turno.jobs, turno.workers, turno.metrics_minute IN SHARE ROW EXCLUSIVE MODE"
TAKEN = """
SELECT EXISTS (SELECT FROM turno.jobs) OR EXISTS (SELECT FROM turno.workers)
    OR EXISTS (SELECT FROM turno.metrics_minute)
"""


class NotEmpty(Exception):
    """There is something in the tables already."""


def require_empty(*, using: str = "default") -> None:
    """Keep others from adding to the tables until the caller's transaction ends.

    Raises NotEmpty when there are jobs, workers or metrics already.
    """

    def work(cursor: CursorWrapper) -> None:
        cursor.execute(LOCK)
        if fetch(cursor, TAKEN, {})[0][0]:
            raise NotEmpty

    in_transaction(using, work)


def plant(rows: Mapping[str, Sequence[Mapping[str, Any]]], *, using: str = "default") -> None:
    """Insert rows by table, one dictionary a row with every column that is named above (absent ones are NULL).

    All or nothing. Raises IntegrityError for a row that a constraint refuses.
    """

    def work(cursor: CursorWrapper) -> None:
        _insert(cursor, WORKERS, rows.get("workers", ()))
        _insert(cursor, TYPES, rows.get("job_types", ()))
        _insert(cursor, PAUSES, rows.get("pauses", ()))
        _insert(cursor, JOBS, rows.get("jobs", ()))
        _insert(cursor, CHANGES, rows.get("job_state_changes", ()))
        _insert(cursor, ATTEMPTS, rows.get("job_attempts", ()))
        _insert(cursor, LOGS, rows.get("job_logs", ()))
        _insert(cursor, LETTERS, rows.get("dead_letters", ()))
        _insert(cursor, MINUTES, rows.get("metrics_minute", ()))

    in_transaction(using, work)


def _insert(cursor: CursorWrapper, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for start in range(0, len(rows), CHUNK):
        text = orjson.dumps(list(rows[start : start + CHUNK])).decode()
        cursor.execute(statement, {"rows": text, "broker": broker()})
