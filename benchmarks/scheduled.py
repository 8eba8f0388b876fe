"""How late scheduled jobs start, with nothing else in the table and with far-future jobs: one JSON line a run.

    python -m benchmarks.scheduled [--jobs 500] [--seconds 20] [--future 200000] [--workers 2] [--turns 2] [--durable]

Starts a throw-away PostgreSQL and real workers in their default settings. `late_ms` is from a job's instant to its
`started_at`, both by the database's clock; `enqueued_ms` the part of it until the promoter had enqueued it.
`machine_ms` is how late a thread that does nothing else wakes up at the same instants and has an answer of the
database: nobody can be less late there just then. `few` and `many` (with the far-future jobs) take turns on one
machine: what counts is how they compare. `worker_mb` is the private memory of the workers' processes before and after;
`promote_ms` and `next_due_ms` what the promoter's two statements take in the server, with the index that each used.
"""

import argparse
import json
import re
import statistics
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.house import house
from benchmarks.isolation import private
from jobs.transitions.promote import NEXT_DUE, PROMOTE
from tests.kit.processes import WorkerProcess, eventually

QUEUE = "scheduled"
LEAD = 3.0  # seconds until the first instant: all are inserted by then
PLAN = """
INSERT INTO turno.jobs (id, type, queue, payload, state, waiting_for, run_at, created_at, tags)
SELECT gen_random_uuid(), 'benchmark.nothing', %(queue)s, '{}', 'Scheduled', 'due',
       now() + (%(lead)s + %(seconds)s * (n + random()) / %(jobs)s) * interval '1 second', now(), ARRAY[%(tag)s]
FROM generate_series(0, %(jobs)s - 1) AS n
"""
FUTURE = """
INSERT INTO turno.jobs (id, type, queue, payload, state, waiting_for, run_at, created_at, tags)
SELECT gen_random_uuid(), 'benchmark.nothing', %(queue)s, '{}', 'Scheduled', 'due',
       now() + interval '30 days' + n * interval '1 second', now(), ARRAY['far']
FROM generate_series(1, %(future)s) AS n
"""
LEFT = "SELECT count(*) FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) AND state <> 'Succeeded'"
# `run_at` is gone once a job is enqueued: the instants are kept beside.
KEEP = "SELECT id, extract(epoch FROM run_at)::float8 FROM turno.jobs WHERE tags @> ARRAY[%(tag)s]"
STARTED = """
SELECT job_id, extract(epoch FROM started_at)::float8 FROM turno.job_attempts
WHERE job_id = ANY(%(ids)s::uuid[])
"""
PROMOTED = """
SELECT job_id, extract(epoch FROM at)::float8 FROM turno.job_state_changes
WHERE job_id = ANY(%(ids)s::uuid[]) AND to_state = 'Enqueued'
"""
DUE_NOW = "SELECT pg_notify('turno_due', '')"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--future", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--durable", action="store_true", help="wait for the disk at each commit, as in production")
    asked = parser.parse_args()
    with (
        house(asked.workers, f"{QUEUE}:8", durable=asked.durable) as (url, workers),
        psycopg.connect(url, autocommit=True) as connection,
    ):
        _run(connection, asked.jobs // 5, asked.seconds / 5, "warm")
        for turn in range(asked.turns):
            connection.execute("TRUNCATE turno.jobs CASCADE")
            connection.execute("VACUUM ANALYZE turno.jobs")
            _print("few", connection, workers, asked, f"few-{turn}")
            connection.execute(FUTURE, {"queue": QUEUE, "future": asked.future})
            connection.execute("VACUUM ANALYZE turno.jobs")
            _print("many", connection, workers, asked, f"many-{turn}")


def _print(
    name: str, connection: psycopg.Connection, workers: Sequence[WorkerProcess], asked: argparse.Namespace, tag: str
) -> None:
    before = _memory(workers)
    late, enqueued, machine = _run(connection, asked.jobs, asked.seconds, tag)
    line = {
        "figure": "scheduled",
        "run": name,
        "jobs": asked.jobs,
        "seconds": asked.seconds,
        "future": asked.future if name == "many" else 0,
        "late_ms": _percentiles(late),
        "enqueued_ms": _percentiles(enqueued),
        "machine_ms": _percentiles(machine),
        "worker_mb": [before, _memory(workers)],
        "promote_ms": _explained(connection, PROMOTE, {"limit": 200, "broker": False}),
        "next_due_ms": _explained(connection, NEXT_DUE, {}),
    }
    print(json.dumps(line), flush=True)


def _run(connection: psycopg.Connection, jobs: int, seconds: float, tag: str) -> tuple[list[float], ...]:
    """Milliseconds from its instant to its start, and until it was enqueued, of each job; and those of the machine."""
    with connection.transaction():
        connection.execute(PLAN, {"queue": QUEUE, "jobs": jobs, "lead": LEAD, "seconds": seconds, "tag": tag})
        instants: dict[UUID, float] = dict(connection.execute(KEEP, {"tag": tag}).fetchall())
        connection.execute(DUE_NOW)
    assert len(instants) == jobs
    machine: list[float] = []
    beside = threading.Thread(target=_awaken, args=(connection, sorted(instants.values()), machine))
    beside.start()

    beside.join()  # nobody asks the database anything more meanwhile
    ids = {"ids": list(instants)}
    eventually(lambda: connection.execute(LEFT, ids).fetchone() == (0,), "all have run", 120)
    late = []
    for text in (STARTED, PROMOTED):
        when: dict[UUID, float] = dict(connection.execute(text, ids).fetchall())
        assert when.keys() == instants.keys()
        late.append([1000 * (when[id_] - at) for id_, at in instants.items()])
    return *late, machine


def _awaken(other: psycopg.Connection, instants: Iterable[float], late: list[float]) -> None:
    """Be there at each instant, as well as this machine can, and ask the database for the time."""
    with psycopg.connect(other.info.dsn, password=other.info.password, autocommit=True) as connection:
        for instant in instants:
            time.sleep(max(0.0, instant - time.time()))
            [(now,)] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
            late.append(1000 * (now - instant))


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "most": round(max(values), 1)}


def _memory(workers: Sequence[WorkerProcess]) -> list[float]:
    """Private megabytes of each worker's process."""
    return [round(private(worker.pid), 1) for worker in workers]


def _explained(connection: psycopg.Connection, statement: str, params: dict[str, Any]) -> dict[str, Any]:
    """The median of nine, and the indexes of the plan; nothing of it stays."""
    times, indexes = [], set[str]()
    for _ in range(9):
        with connection.transaction(force_rollback=True):
            text = "\n".join(
                row[0] for row in connection.execute(f"EXPLAIN (ANALYZE, SUMMARY) {statement}", params).fetchall()
            )
        times.append(float(re.findall(r"Execution Time: ([0-9.]+) ms", text)[0]))
        indexes |= set(re.findall(r"using (jobs_\w+)", text)) | set(re.findall(r"Seq Scan on (jobs) ", text))
    return {"median": round(statistics.median(times), 3), "plan": sorted(indexes)}


if __name__ == "__main__":
    main()
