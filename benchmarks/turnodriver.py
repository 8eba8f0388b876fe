"""Turno's driver: enqueues by the public functions, in a process with Turno's settings. See `benchmarks.driver`."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from turno.environment import prepare

BATCH = 1000
CLEAR = """
TRUNCATE turno.jobs, turno.job_state_changes, turno.job_attempts, turno.outbox_messages, turno.metrics_minute CASCADE
"""
OVERLAPS = """
SELECT count(*) FROM (
    SELECT a.started_at, lag(a.ended_at) OVER (PARTITION BY j.concurrency_key ORDER BY a.started_at) AS before
    FROM turno.job_attempts AS a JOIN turno.jobs AS j ON j.id = a.job_id WHERE j.concurrency_key IS NOT NULL
) AS one WHERE started_at < before
"""
RUNNING = "SELECT id FROM turno.jobs WHERE state = 'Processing' ORDER BY id"
KEPT = """
SELECT (SELECT count(*) FROM turno.jobs WHERE state = 'Succeeded') AS jobs,
       (SELECT count(*) FROM turno.job_attempts WHERE outcome = 'Succeeded') AS attempts,
       (SELECT count(*) FROM turno.job_state_changes) AS changes,
       (SELECT count(*) FROM turno.jobs WHERE state <> 'Succeeded') AS others
"""


def main() -> None:
    """Serve."""
    prepare()
    import django

    django.setup()
    from benchmarks.driver import serve
    from jobs.registry import catalogue

    catalogue.load()
    verbs = (clear, load, one_by_one, bulk, latency, schedule, cancel, left, outbox, kept, overlap)
    serve({verb.__name__: verb for verb in verbs})


def _rows(text: str) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall()) if cursor.description else []


def clear() -> None:
    """Forget all jobs."""
    _rows(CLEAR)


def load(jobs: int, type: str, size: int = 0, seconds: float | None = None, keys: int = 0) -> None:
    """Enqueue so many, as fast as it goes, in one transaction; on so many concurrency keys, if any."""
    from django.db import transaction

    payload: dict[str, Any] = {"text": "x" * size} if size else {}
    if seconds is not None:
        payload["seconds"] = seconds
    with transaction.atomic():
        _many(jobs, type, payload, keys)


def _many(jobs: int, type_: str, payload: dict[str, Any], keys: int = 0) -> None:
    from turno.jobs import JobRequest, enqueue_many

    plain = JobRequest(type_, payload=payload)
    keyed = [JobRequest(type_, payload=payload, concurrency_key=f"key-{key}") for key in range(keys)]
    for begun in range(0, jobs, BATCH):
        numbers = range(begun, min(begun + BATCH, jobs))
        enqueue_many([keyed[number % keys] if keys else plain for number in numbers])


def one_by_one(jobs: int) -> float:
    """Seconds for so many, each in a transaction of its own."""
    from turno.jobs import enqueue

    began = time.perf_counter()
    for _ in range(jobs):
        enqueue("bench.async")
    return time.perf_counter() - began


def bulk(jobs: int) -> float:
    """Seconds for so many, a thousand in a transaction."""
    began = time.perf_counter()
    _many(jobs, "bench.async", {})
    return time.perf_counter() - began


def latency(samples: int, gap: float) -> None:
    """One job after the other, about `gap` seconds apart, each of which says when it was asked for."""
    from turno.jobs import enqueue

    for _ in range(samples):
        enqueue("bench.late", {"sent": time.monotonic()})
        time.sleep(gap * random.uniform(0.5, 1.5))  # noqa: S311  (spreads clients, guards nothing)


def schedule(jobs: int, lead: float, seconds: float) -> None:
    """So many jobs at random instants of `seconds`, which begin in `lead` seconds."""
    from turno.jobs import JobRequest, enqueue_many

    now, clock = datetime.now(UTC), time.monotonic()
    after = [lead + seconds * random.random() for _ in range(jobs)]  # noqa: S311  (spreads clients, guards nothing)
    enqueue_many(
        JobRequest("bench.late", payload={"sent": clock + wait}, run_at=now + timedelta(seconds=wait)) for wait in after
    )


def cancel(gap: float) -> dict[str, float]:
    """Cancel all that runs, one after the other: the instant of each call, by job."""
    from turno.jobs import cancel as cancel_job

    asked = {}
    for (job,) in _rows(RUNNING):
        asked[str(job)] = time.monotonic()
        cancel_job(job)
        time.sleep(gap)
    return asked


def overlap() -> int:
    """How many executions began before the one before them on the same key had ended."""
    return int(_rows(OVERLAPS)[0][0])


def left() -> int:
    """How many jobs are not done."""
    return int(_rows("SELECT count(*) FROM turno.jobs WHERE state IN ('Scheduled', 'Enqueued', 'Processing')")[0][0])


def outbox() -> int:
    """How many messages are not with the broker yet."""
    return int(_rows("SELECT count(*) FROM turno.outbox_messages")[0][0])


def kept() -> dict[str, int]:
    """What stands in the tables when all is done: rows by name."""
    jobs, attempts, changes, others = _rows(KEPT)[0]
    return {"jobs": jobs, "attempts": attempts, "changes": changes, "others": others}


if __name__ == "__main__":
    main()
