"""Drain: how many jobs a second warm workers do that find a full queue. With it: microseconds of processor a job."""

import time
from typing import Any

from benchmarks.figure import Sample, scaled
from benchmarks.sides.base import Side
from benchmarks.usage import load_average

LARGE = 5_000  # bytes of a payload: of larger ones as many fewer jobs


def emptied(side: Side, jobs: int, **options: Any) -> tuple[float, dict[str, float]]:
    """Seconds in which workers do so many jobs that wait for them, and their cost; they are stopped while it fills."""
    before = side.tally.count()
    with side.frozen():
        side.load(jobs, **options)
        side.settle()
        meter = side.meter()
        began = time.monotonic()
    side.wait(before + jobs)
    took = time.monotonic() - began
    return took, meter.per_job(jobs)


def drain(side: Side, scale: float, *, size: int = 0) -> Sample:
    """One turn of one side; `size` is that of the payloads in bytes. The workers are stopped while the queue fills."""
    jobs = scaled(side.setup.jobs // max(1, size // LARGE), scale, 50)
    options: dict[str, Any] = {"size": size} if size else {}
    with side.working():
        before = side.tally.count()
        took, cpu = emptied(side, jobs, **options)
        kept = side.driver.ask("kept")
    ran = side.tally.count() - before
    assert ran == jobs, f"{side.name}: {ran} executions of {jobs} jobs"
    wrong = side.complete(kept, jobs)
    assert wrong is None, f"{side.name}: {wrong}"
    return {"value": jobs / took, "jobs": jobs, "seconds": round(took, 3), "cpu_us": cpu, "load": load_average()}
