"""Procrastinate: the tasks, its worker and its driver (`python -m benchmarks.peers.with_procrastinate worker|driver`).

Rows stay after their end, with their events, as its defaults say. A worker is one event loop with many jobs at once,
each with connections of a pool.
"""

import os
import random
import sys
import time
from typing import Any

import procrastinate
import psycopg
import uvloop

from benchmarks import tally
from benchmarks.driver import serve

URL = os.environ["BENCHMARK_DATABASE"]
CONCURRENCY = int(os.environ.get("BENCHMARK_CONCURRENCY", "20"))
BATCH = 1000
KEPT = """
SELECT (SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'),
       (SELECT count(*) FROM procrastinate_events),
       (SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded')
"""
WORKER = sys.argv[1:2] == ["worker"]
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=URL, min_size=4, max_size=CONCURRENCY + 4)
    if WORKER
    else procrastinate.SyncPsycopgConnector(conninfo=URL, min_size=1, max_size=1)
)


@app.task(name="nothing")
async def nothing(text: str = "") -> None:
    """Does nothing."""
    tally.ran()


@app.task(name="late")
async def late(sent: float) -> None:
    """Notes how late it is."""
    tally.late(sent)


async def _work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY, wait=True)


def _row(text: str) -> Any:
    with psycopg.connect(URL, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchone() if cursor.description else None


def clear() -> None:
    """Forget all."""
    _row("TRUNCATE procrastinate_jobs CASCADE")


def load(jobs: int, size: int = 0) -> None:
    """So many, as fast as it goes."""
    bulk(jobs, size)


def one_by_one(jobs: int) -> float:
    """Seconds for so many, each in a transaction of its own."""
    began = time.perf_counter()
    for _ in range(jobs):
        nothing.defer()
    return time.perf_counter() - began


def bulk(jobs: int, size: int = 0) -> float:
    """Seconds for so many, a thousand in a statement."""
    arguments = {"text": "x" * size} if size else {}
    began = time.perf_counter()
    for done in range(0, jobs, BATCH):
        nothing.batch_defer(*[arguments] * min(BATCH, jobs - done))
    return time.perf_counter() - began


def latency(samples: int, gap: float) -> None:
    """One after the other."""
    for _ in range(samples):
        late.defer(sent=time.monotonic())
        time.sleep(gap * random.uniform(0.5, 1.5))  # noqa: S311  (spreads clients, guards nothing)


def left() -> int:
    """How many are not done."""
    return int(_row("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")[0])


def kept() -> dict[str, int]:
    """The rows by kind."""
    return dict(zip(("jobs", "events", "others"), _row(KEPT), strict=True))


def main() -> None:
    """Work, or serve as the driver."""
    if WORKER:
        uvloop.run(_work())
        return
    with app.open():
        if _row("SELECT to_regclass('procrastinate_jobs')") == (None,):
            app.schema_manager.apply_schema()
        serve(
            {
                "clear": clear,
                "load": load,
                "one_by_one": one_by_one,
                "bulk": bulk,
                "latency": latency,
                "left": left,
                "kept": kept,
            }
        )


if __name__ == "__main__":
    main()
