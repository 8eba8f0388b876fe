"""What a concurrency key costs, and how busy its slots are kept: one JSON line a run.

    python -m benchmarks.keys [--keys 20] [--jobs 200] [--limit 10] [--hold 1.0] [--workers 4] [--slots 64] [--durable]

Starts a throw-away PostgreSQL and real workers. `handover_ms` is from the end of an execution to the claim of the next
one on the same slot of its key, by the database's clock, while jobs of the key wait: nobody else may use it meanwhile.
`idle` is the longest time in which a key had a free slot although jobs of it waited, in seconds; `used` the part of
the slots' time in which they ran something. `with_keys` and `without` are the same number of jobs that do nothing, on
five keys without a limit that matters and on none: jobs a second, in turns, so that the ratio is what counts.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.house import house
from tests.kit.processes import eventually

QUEUE = "keys"
INSERT = """
INSERT INTO turno.jobs (id, type, queue, payload, state, dispatch_id, enqueued_at, waiting_for, gate, concurrency_key,
    concurrency_limit, created_at)
SELECT gen_random_uuid(), %(type)s, %(queue)s, %(payload)s::jsonb, 'Enqueued', gen_random_uuid(), now(), NULL, NULL,
    CASE WHEN %(keys)s > 0 THEN 'key-' || n %% GREATEST(1, %(keys)s) END,
    CASE WHEN %(keys)s > 0 THEN %(limit)s END, now()
FROM generate_series(0, %(jobs)s - 1) AS n
"""
LEFT = "SELECT count(*) FROM turno.jobs WHERE state <> 'Succeeded'"
RAN = """
SELECT j.concurrency_key, a.job_id, extract(epoch FROM a.started_at)::float8, extract(epoch FROM a.ended_at)::float8
FROM turno.job_attempts AS a JOIN turno.jobs AS j ON j.id = a.job_id
"""
WORK = "SELECT pg_notify('turno_work', %(queue)s)"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--hold", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--durable", action="store_true", help="wait for the disk at each commit, as in production")
    asked = parser.parse_args()
    with (
        house(asked.workers, f"{QUEUE}:{asked.slots}", durable=asked.durable) as (url, _workers),
        psycopg.connect(url, autocommit=True) as connection,
    ):
        _run(connection, "benchmark.nothing", 500, keys=5, limit=1000)  # warm
        held = asked.keys * asked.jobs
        took = _run(connection, "benchmark.pause", held, keys=asked.keys, limit=asked.limit, hold=asked.hold)
        print(json.dumps({"figure": "keys", "run": "slots", "seconds": round(took, 1), **_slots(connection, asked)}))
        for turn in range(asked.turns):
            for name, keys in (("without", 0), ("with_keys", 5)):
                took = _run(connection, "benchmark.nothing", 10_000, keys=keys, limit=1000)
                line = {"figure": "keys", "run": name, "turn": turn, "jobs_a_second": round(10_000 / took)}
                print(json.dumps(line), flush=True)


def _run(connection: psycopg.Connection, type_: str, jobs: int, *, keys: int, limit: int, hold: float = 0.0) -> float:
    """Seconds until so many jobs have run."""
    connection.execute("TRUNCATE turno.jobs CASCADE")
    payload = json.dumps({"seconds": hold} if hold else {})
    params = {"type": type_, "queue": QUEUE, "payload": payload, "jobs": jobs, "keys": keys, "limit": limit}
    began = time.monotonic()
    connection.execute(INSERT, params)
    connection.execute(WORK, {"queue": QUEUE})
    eventually(lambda: connection.execute(LEFT).fetchone() == (0,), "all have run", 600)
    return time.monotonic() - began


def _slots(connection: psycopg.Connection, asked: argparse.Namespace) -> dict[str, Any]:
    ran: dict[str, list[tuple[UUID, float, float]]] = defaultdict(list)
    for key, job, start, end in connection.execute(RAN).fetchall():
        ran[key].append((job, start, end))
    gaps, idle, used = [], 0.0, []
    for runs in ran.values():
        starts = sorted(start for _, start, _ in runs)
        ends = sorted(end for _, _, end in runs)
        # The n-th end makes room for the start that comes `limit` places later.
        between = [start - end for start, end in zip(starts[asked.limit :], ends, strict=False)]
        gaps += [1000 * gap for gap in between]
        idle = max([idle, *between])
        used.append(sum(end - start for _, start, end in runs) / (asked.limit * (ends[-1] - starts[0])))
    cuts = statistics.quantiles(gaps, n=100, method="inclusive")
    return {
        "jobs": asked.keys * asked.jobs,
        "handover_ms": {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1)},
        "idle": round(idle, 3),
        "used": round(statistics.mean(used), 3),
    }


if __name__ == "__main__":
    main()
