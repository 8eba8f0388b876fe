"""Ten thousand jobs of 20 ms on ten concurrency keys, against the ideal: ten at once, and no gap between two."""

from benchmarks.figure import Sample, scaled
from benchmarks.figures.drain import emptied
from benchmarks.sides.base import Side
from benchmarks.usage import load_average

KEYS, HOLD = 10, 0.02


def keys(side: Side, scale: float) -> Sample:
    """The part of the ideal that is reached, 1 at most."""
    jobs = scaled(10_000, scale, 100)
    with side.working():
        took, cpu = emptied(side, jobs, type="bench.pause", seconds=HOLD, keys=KEYS)
        overlaps, done = side.driver.ask("overlap"), side.driver.ask("kept")["jobs"]
    assert overlaps == 0, f"{side.name}: {overlaps} executions beside another one of their key"
    assert done == jobs, f"{side.name}: {done} of {jobs} jobs have succeeded"
    ideal = jobs * HOLD / KEYS
    return {"value": ideal / took, "jobs": jobs, "seconds": round(took, 2), "cpu_us": cpu, "load": load_average()}
