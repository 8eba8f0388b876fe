"""A valid row of every table, as plain SQL inserts it: what the constraints' tests start from and break."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db import connection

Row = dict[str, Any]
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
TYPE = "report.generate"


def _owned() -> Row:
    return {"worker_id": uuid4(), "claim_id": uuid4(), "claimed_at": NOON, "lease_expires_at": LATER}


# What a job of each state carries besides its id, type, queue and payload.
STATES: dict[str, Callable[[], Row]] = {
    "Enqueued": lambda: {"state": "Enqueued", "dispatch_id": uuid4(), "enqueued_at": NOON},
    "Scheduled": lambda: {"state": "Scheduled", "waiting_for": "due", "run_at": LATER},
    "Parked": lambda: {"state": "Scheduled", "waiting_for": "pause", "gate": "type:x"},
    "Processing": lambda: {"state": "Processing", "dispatch_id": uuid4(), "enqueued_at": NOON, **_owned()},
    "Succeeded": lambda: {"state": "Succeeded", "finished_at": LATER},
    "Failed": lambda: {"state": "Failed", "finished_at": LATER, "failure_kind": "error"},
    "Cancelled": lambda: {"state": "Cancelled", "finished_at": LATER},
}


def job(state: str = "Enqueued") -> Row:
    """A job that nothing forbids."""
    return {"id": uuid4(), "type": TYPE, "queue": "default", "payload": "{}", **STATES[state]()}


def _of_job(**columns: Any) -> Callable[[], Row]:
    return lambda: {"job_id": insert("jobs"), **columns}


def _attempt() -> Row:
    return {
        "job_id": insert("jobs"),
        "ordinal": 1,
        "attempt": 1,
        "counted": True,
        "dispatch_id": uuid4(),
        "started_at": NOON,
        "ended_at": LATER,
        "outcome": "Succeeded",
    }


def _dead_letter() -> Row:
    about = {"type": TYPE, "queue": "default", "failure_kind": "error", "fingerprint": "f", "attempts": 5}
    return {"id": uuid4(), "job_id": insert("jobs"), **about}


def _worker() -> Row:
    identity = {"boot_id": uuid4().hex, "pid_namespace": "4026531836", "pid": 7, "pid_started": "1234"}
    return {"id": uuid4(), "name": "w", "host": "h", "version": "0.1.0", "queues": '{"default": 4}', **identity}


def _recurring() -> Row:
    return {"id": uuid4(), "name": uuid4().hex, "type": TYPE, "payload": "{}", "cron": "0 3 * * *"}


BASE: dict[str, Callable[[], Row]] = {
    "jobs": job,
    "job_attempts": _attempt,
    "job_state_changes": _of_job(from_state=None, to_state="Enqueued", reason="created"),
    "job_logs": _of_job(execution=1, number=1, message="line"),
    "job_artifacts": _of_job(execution=1, path="a/b.txt", size=3, sha256="0" * 64, content_type="text/plain"),
    "dead_letters": _dead_letter,
    "job_dependencies": lambda: {"child_id": insert("jobs"), "parent_id": insert("jobs")},
    "concurrency_keys": lambda: {"kind": "key", "value": uuid4().hex},
    "concurrency_slots": lambda: {
        "key_id": insert("concurrency_keys"),
        "job_id": insert("jobs"),
        "slot": 1,
        "dispatch_id": uuid4(),
    },
    "outbox_messages": _of_job(kind="dispatch", dispatch_id=uuid4(), queue="default"),
    "queues": lambda: {"name": uuid4().hex},
    "pauses": lambda: {"scope": "queue", "value": uuid4().hex},
    "circuits": lambda: {"type": uuid4().hex},
    "rates": lambda: {"type": uuid4().hex, "allowed": 100, "window": 60.0},
    "counters": lambda: {"name": uuid4().hex},
    "job_types": lambda: {"name": uuid4().hex},
    "unserved_types": lambda: {"queue": "default", "type": uuid4().hex},
    "workers": _worker,
    "leases": lambda: {"name": uuid4().hex, "until": LATER},
    "recurring_jobs": _recurring,
    "bulk_runs": lambda: {"id": uuid4(), "act": "cancel", "target": "jobs", "filter": "{}", "before": NOON},
    "promise_checks": lambda: {"seconds": 0.1, "attended": True},
    "storm_reports": lambda: {"place": "here", "seed": 1, "seconds": 60.0, "jobs": 5},
    "metrics_minute": lambda: {"minute": NOON, "queue": "default", "type": uuid4().hex, "durations": [0, 0]},
}


def insert(table: str, changes: Mapping[str, Any] | None = None, *, state: str | None = None) -> Any:
    """Insert a valid row with these changes and check its foreign keys at once; returns its first column (the key)."""
    return insert_row(table, {**(job(state) if state else BASE[table]()), **(changes or {})})


def insert_row(table: str, row: Row) -> Any:
    """Insert the row as it is. Raises IntegrityError."""
    columns = ", ".join(f'"{column}"' for column in row)
    marks = ", ".join(["%s"] * len(row))
    with connection.cursor() as cursor:
        cursor.execute(f'INSERT INTO "turno"."{table}" ({columns}) VALUES ({marks}) RETURNING *', list(row.values()))
        key = cursor.fetchone()[0]
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    return key


def query(sql: str, params: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params))
        return cursor.fetchall()
