"""Rows of tests by plain SQL, in any state, past the verbs; and what the tables say afterwards, as plain values.

Works inside a rolled-back test and with committed rows alike: everything goes through Django's connection `using`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.db import connections

from jobs.states import FINAL, PARKED, State

LABEL = {"name": "worker-1", "host": "host-1", "pid": 4242, "version": "0.1.0"}
JSON_COLUMNS = frozenset({"payload", "result", "worker_label"})


class Sql(str):
    """A column given as an SQL expression instead of a value: `Sql("now()")`."""

    __slots__ = ()


def ago(seconds: float) -> Sql:
    """The instant `seconds` before the transaction's now, by the database's clock."""
    return Sql(f"now() - {float(seconds)!r} * interval '1 second'")


def ahead(seconds: float) -> Sql:
    """The instant `seconds` after the transaction's now, by the database's clock."""
    return ago(-seconds)


@dataclass(frozen=True, slots=True)
class Made:
    """A row that a test made: what the verbs need to name it. `token` and `worker` are None where the row has none."""

    id: UUID
    token: UUID
    worker: UUID
    queue: str
    type: str


def defaults(state: State, waiting_for: str | None) -> dict[str, Any]:
    """The columns that the constraints demand of a job in `state`, all of them free to be overridden."""
    columns: dict[str, Any] = {"type": "test.echo", "queue": "default", "payload": {}, "enqueued_at": ago(2)}
    if state is State.SCHEDULED:
        columns["waiting_for"] = waiting_for or "due"
        if columns["waiting_for"] not in PARKED:
            columns["run_at"] = ahead(3600)
    elif state is State.PROCESSING:
        columns |= {"executions": 1, "slot": 1, "worker_label": LABEL, "claim_id": Sql("gen_random_uuid()")}
        columns |= {"claimed_at": ago(1), "started_at": ago(1), "lease_expires_at": ahead(60)}
    elif state in FINAL:
        columns["finished_at"] = ago(1)
        if state is State.FAILED:
            columns |= {"failure_kind": "error", "error_type": "ValueError", "error_message": "no"}
    return columns


def make_job(state: State | str = State.ENQUEUED, *, using: str = "default", **columns: Any) -> Made:
    """Insert one job in `state`, without history; `columns` override the defaults (values, or `Sql`).

    `worker` owns it when it is Processing. Every row gets a dispatch token, also where the verbs would have cleared
    it: only the state then protects it.
    """
    state = State(state)
    worker = columns.pop("worker", None) or uuid4()
    row = defaults(state, columns.get("waiting_for")) | {"id": uuid4(), "dispatch_id": uuid4()} | columns
    if state is State.PROCESSING:
        row["worker_id"] = worker
    _insert({"state": str(state), **row}, 1, using)
    return Made(row["id"], row["dispatch_id"], worker, row["queue"], row["type"])


def make_jobs(count: int, state: State | str = State.ENQUEUED, *, using: str = "default", **columns: Any) -> None:
    """Insert `count` jobs in `state` by one statement, with ids and tokens of the database; in `Sql`, `n` counts."""
    state = State(state)
    row = {"id": Sql("gen_random_uuid()"), "dispatch_id": Sql("gen_random_uuid()")}
    if state is State.PROCESSING:
        row["worker_id"] = Sql("gen_random_uuid()")
    _insert({"state": str(state), **defaults(state, columns.get("waiting_for")), **row, **columns}, count, using)


def _insert(row: dict[str, Any], count: int, using: str) -> None:
    values, params = [], []
    for name, value in row.items():
        if isinstance(value, Sql):
            values.append(value.replace("%", "%%"))
        else:
            kind = "::jsonb" if name in JSON_COLUMNS else ""
            values.append(f"%s{kind}")
            params.append(orjson.dumps(value).decode() if kind and value is not None else value)
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO turno.jobs ({', '.join(row)}) SELECT {', '.join(values)} FROM generate_series(1, %s) AS n",
            [*params, count],
        )


def make_letter(made: Made, *, using: str = "default", **columns: Any) -> None:
    """Insert a pending dead letter of the job; `columns` override."""
    row = {"id": uuid4(), "job_id": made.id, "type": made.type, "queue": made.queue, "failure_kind": "error"}
    row |= {"fingerprint": "f", "attempts": 1, "created_at": ago(0)} | columns
    values = [str(v) if isinstance(v, Sql) else "%s" for v in row.values()]
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO turno.dead_letters ({', '.join(row)}) VALUES ({', '.join(values)})",
            [v for v in row.values() if not isinstance(v, Sql)],
        )


def make_worker(*, using: str = "default", queues: dict[str, int], types: list[str], **columns: Any) -> UUID:
    """Insert a live worker that serves these queues (slots by name) and types; `columns` override. Its id."""
    row: dict[str, Any] = {"id": uuid4(), "name": "w", "host": "h", "boot_id": uuid4().hex, "pid_namespace": "1"}
    row |= {"pid": 7, "pid_started": "1", "version": "1", "queues": orjson.dumps(queues).decode(), "types": types}
    row |= columns
    values = [str(v) if isinstance(v, Sql) else "%s" for v in row.values()]
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO turno.workers ({', '.join(row)}) VALUES ({', '.join(values)})",
            [v for v in row.values() if not isinstance(v, Sql)],
        )
    return row["id"]


def execute(sql: str, *params: Any, using: str = "default") -> None:
    """Run one statement and drop its rows."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params or None)


def select(sql: str, *params: Any, using: str = "default") -> list[dict[str, Any]]:
    """Run a query; one dictionary a row, JSON columns parsed."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params or None)
        names = [column.name for column in cursor.description or ()]
        rows = cursor.fetchall()
    return [{name: _plain(name, value) for name, value in zip(names, row, strict=True)} for row in rows]


def _plain(name: str, value: Any) -> Any:
    return orjson.loads(value) if name in JSON_COLUMNS and isinstance(value, str) else value


def job(id_: UUID, *, using: str = "default") -> dict[str, Any] | None:
    """The job's row, or None."""
    rows = select("SELECT * FROM turno.jobs WHERE id = %s", id_, using=using)
    return rows[0] if rows else None


def state(id_: UUID, *, using: str = "default") -> str | None:
    """The job's state, or None when there is no such job."""
    row = job(id_, using=using)
    return row["state"] if row else None


def history(id_: UUID, *, using: str = "default") -> list[dict[str, Any]]:
    """The job's state changes, oldest first."""
    return select("SELECT * FROM turno.job_state_changes WHERE job_id = %s ORDER BY id", id_, using=using)


def edges(id_: UUID, *, using: str = "default") -> list[tuple[str, str, str]]:
    """The job's state changes as (from, to, reason), oldest first."""
    return [(row["from_state"], row["to_state"], row["reason"]) for row in history(id_, using=using)]


def attempts(id_: UUID, *, using: str = "default") -> list[dict[str, Any]]:
    """The job's executions, oldest first."""
    return select("SELECT * FROM turno.job_attempts WHERE job_id = %s ORDER BY ordinal", id_, using=using)


def letters(id_: UUID, *, using: str = "default") -> list[dict[str, Any]]:
    """The job's dead letters, oldest first."""
    return select("SELECT * FROM turno.dead_letters WHERE job_id = %s ORDER BY created_at, id", id_, using=using)


def logs(id_: UUID, *, using: str = "default") -> list[dict[str, Any]]:
    """The job's log lines in order."""
    return select("SELECT * FROM turno.job_logs WHERE job_id = %s ORDER BY execution, number", id_, using=using)


def metrics(*, using: str = "default") -> list[dict[str, Any]]:
    """Every row of the minutes' metrics, in order of minute, queue and type."""
    return select("SELECT * FROM turno.metrics_minute ORDER BY minute, queue, type, worker_id", using=using)


def total(column: str, rows: Iterable[dict[str, Any]] | None = None) -> Any:
    """The sum of a column over the rows of metrics (all of them when none are given)."""
    return sum(row[column] for row in (metrics() if rows is None else rows))


def empty_tables() -> None:
    """Delete what tests of the verbs commit; cheaper than truncating, for the few rows that they make."""
    ours = "jobs metrics_minute pauses job_types unserved_types concurrency_keys rates counters"
    for table in ours.split():
        execute(f"DELETE FROM turno.{table}")
