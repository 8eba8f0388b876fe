"""Enqueue: how many jobs a second one caller hands over, one by one or in batches, while nobody works."""

from contextlib import nullcontext

from benchmarks.figure import Sample, scaled
from benchmarks.sides.base import Side
from benchmarks.usage import load_average

WARM = 300  # jobs at scale 1


def one_by_one(side: Side, scale: float) -> Sample:
    """Each in a transaction of its own, or confirmed by the broker, before the next."""
    return _measured(side, "one_by_one", scaled(side.setup.singly, scale, 50), scaled(WARM, scale))


def bulk(side: Side, scale: float) -> Sample:
    """In batches of a thousand, where the program has such; else one after the other."""
    return _measured(side, "bulk", scaled(side.setup.at_once, scale, 50), scaled(WARM, scale))


def _measured(side: Side, verb: str, jobs: int, warm: int) -> Sample:
    with side.working() if side.setup.served else nullcontext():
        side.driver.ask("clear")
        side.driver.ask(verb, jobs=warm)
        side.driver.ask("clear")
        side.settle()
        meter = side.meter(driver=True)
        took = side.driver.ask(verb, jobs=jobs)
        cpu = meter.per_job(jobs)
        waiting = side.driver.ask("left")
    assert waiting == jobs, f"{side.name}: {waiting} of {jobs} jobs are there"
    return {"value": jobs / took, "jobs": jobs, "seconds": round(took, 3), "cpu_us": cpu, "load": load_average()}
