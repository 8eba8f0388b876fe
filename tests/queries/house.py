"""Workers, minutes, pauses and letters as the reads find them: rows by plain SQL, instants relative to now()."""

from typing import Any
from uuid import UUID, uuid4

import orjson

from jobs.metrics import BUCKETS
from tests.transitions import rows

NOTHING = [0] * (len(BUCKETS) + 1)


def worker(name: str, queues: Any = None, *, seen: float = 1, started: float = 60, **columns: Any) -> UUID:
    """A worker that gave its last sign of life `seen` seconds ago; returns its id."""
    row = {"id": uuid4(), "name": name, "host": "host-1", "boot_id": uuid4().hex, "pid_namespace": "1", "pid": 7}
    row |= {"pid_started": "1", "version": "1.0", "state": "Online", "problems": [], **columns}
    row["problems"] = orjson.dumps(row["problems"]).decode()
    row["queues"] = orjson.dumps({"default": 2} if queues is None else queues).decode()
    rows.execute(
        f"INSERT INTO turno.workers ({', '.join(row)}, seen_at, started_at) VALUES ({', '.join(['%s'] * len(row))},"
        " now() - make_interval(secs => %s), now() - make_interval(secs => %s))", *row.values(), seen, started,
    )  # fmt: skip
    return row["id"]


def message(job: rows.Made, *, age: float = 1, **columns: Any) -> None:
    """The message of the job's current entry, which has waited in the outbox for `age` seconds."""
    row = {"job_id": job.id, "dispatch_id": job.token, "queue": job.queue, **columns}
    rows.execute(
        f"INSERT INTO turno.outbox_messages (created_at, {', '.join(row)}) VALUES"
        f" (now() - make_interval(secs => %s), {', '.join(['%s'] * len(row))})", age, *row.values(),
    )  # fmt: skip


def running(owner: UUID, slot: int | None = 1, **columns: Any) -> UUID:
    """A job that this worker runs; returns its id."""
    return rows.make_job("Processing", worker=owner, slot=slot, **columns).id


def minute(ago: int, *, durations: list[int] | None = None, **columns: Any) -> None:
    """The metrics of the minute that began `ago` minutes before the current one."""
    row = {"queue": "default", "type": "test.any", "durations": durations or NOTHING, **columns}
    rows.execute(
        f"INSERT INTO turno.metrics_minute (minute, {', '.join(row)}) VALUES"
        f" (date_trunc('minute', now()) - make_interval(mins => %s), {', '.join(['%s'] * len(row))})",
        ago, *row.values(),
    )  # fmt: skip


def histogram(**buckets: int) -> list[int]:
    """A histogram with so many executions in the buckets b0, b1, … (by place)."""
    return [buckets.get(f"b{place}", 0) for place in range(len(NOTHING))]


def pause(scope: str, value: str, **columns: Any) -> None:
    """Something that is paused; `columns` may be `rows.Sql`."""
    row = {"scope": scope, "value": value, **columns}
    values = [str(v) if isinstance(v, rows.Sql) else "%s" for v in row.values()]
    rows.execute(
        f"INSERT INTO turno.pauses ({', '.join(row)}) VALUES ({', '.join(values)})",
        *(v for v in row.values() if not isinstance(v, rows.Sql)),
    )


def letter(cause: str = "f", *, age: float = 10, job: rows.Made | None = None, **columns: Any) -> UUID:
    """A dead letter of a failed job, `age` seconds old; resolved where `resolved_how` says so. Returns its id."""
    id_ = columns.setdefault("id", uuid4())
    if "resolved_how" in columns:
        columns.setdefault("resolved_at", rows.ago(1))
    made = job or rows.make_job("Failed", type=columns.get("type", "test.echo"), queue=columns.get("queue", "default"))
    rows.make_letter(made, fingerprint=cause, created_at=rows.ago(age), **columns)
    return id_
