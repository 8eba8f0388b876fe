"""What a child process costs a job: one JSON line with milliseconds a job, warm and fresh, and memory.

    DJANGO_SETTINGS_MODULE=turno.settings python -m benchmarks.isolation

No database is used. `warm` is a job that does nothing, from the worker's hands to its end, in a child that was there;
`fresh` the same in a child of its own; `thread` in a thread. `parallel` is a job's share of 2,000 on 4 slots.
Memory is the private part (USS) of a child that is idle, and of the forkserver.
"""

import json
import statistics
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import django

WARM, FRESH, BURST, SLOTS = 2000, 50, 2000, 4


def main() -> None:
    django.setup()
    from jobs.outcomes import Claim, Ending
    from turno.handlers import JobContext, job_type
    from workers.clock import boottime
    from workers.execution import Execution, prepare
    from workers.isolation import ForkServer, ProcessPool, ThreadPool
    from workers.leases import Held

    for name, options in (("warm", {}), ("fresh", {"fresh": True}), ("thread", {"isolation": "thread"})):

        @job_type(f"benchmark.{name}", **options)
        def nothing(ctx: JobContext) -> None:
            """Does nothing."""

    ended = threading.Semaphore(0)

    def done(execution: Execution, ending: Ending) -> None:
        assert ending.to == "Succeeded", ending
        ended.release()

    def start(pool: Any, type_: str) -> None:
        claim = Claim(
            uuid4(), uuid4(), f"benchmark.{type_}", "default", {}, 1, 1, 0, 1, 0, None, False, datetime.now(UTC)
        )
        pool.start_all([prepare(Held(claim, boottime() + 600), lambda ctx: None)])

    def one_by_one(pool: Any, type_: str, times: int) -> float:
        took = []
        for _ in range(times):
            began = time.perf_counter()
            start(pool, type_)
            ended.acquire()
            took.append(time.perf_counter() - began)
        return statistics.median(took) * 1000

    def burst(pool: Any, type_: str) -> float:
        began = time.perf_counter()
        for number in range(BURST):
            if number >= SLOTS:
                ended.acquire()
            start(pool, type_)
        for _ in range(SLOTS):
            ended.acquire()
        return (time.perf_counter() - began) / BURST * 1000

    server = ForkServer.fork()
    pool, threads = ProcessPool(server, done), ThreadPool(SLOTS, done)
    pool.start()
    figures = measured(
        {
            "thread": lambda: one_by_one(threads, "thread", WARM),
            "warm": lambda: one_by_one(pool, "warm", WARM),
            "fresh": lambda: one_by_one(pool, "fresh", FRESH),
            "parallel": lambda: burst(pool, "warm"),
        }
    )
    memory = {"child_mb": round(private(pool.children[0]), 1), "forkserver_mb": round(private(server.pid), 1)}
    print(json.dumps({"figure": "isolation", "unit": "ms a job", **figures, **memory}))
    pool.close()
    threads.close()


def measured(work: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Each figure after a warm-up of the same."""
    for run in work.values():
        run()
    return {name: round(run(), 3) for name, run in work.items()}


def private(pid: int) -> float:
    """Megabytes that this process shares with no other."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) / 1024


if __name__ == "__main__":
    main()
