"""What a house costs that does nothing, what it takes to start it, and whether it grows while it works."""

import time
from collections.abc import Mapping
from statistics import mean

import psycopg

from benchmarks.figure import Sample, scaled
from benchmarks.sides.base import Side
from benchmarks.usage import load_average, memory_mb
from workers import tree

QUIET = 3.0  # seconds until a house that has just worked has nothing left to do
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
FLUSHED = 2.0  # seconds: PostgreSQL's backends tell their counters once a second at most


def memory(side: Side, scale: float) -> Sample:
    """Kilobytes by which the workers' own memory grows a job, over 50,000 jobs after a warm-up of 10,000."""
    return _growth(side, scaled(10_000, scale, 200), scaled(50_000, scale, 200))


def million(side: Side, scale: float) -> Sample:
    """The same over 1,000,000."""
    return _growth(side, scaled(10_000, scale, 200), scaled(1_000_000, scale, 200))


def _growth(side: Side, warm: int, jobs: int) -> Sample:
    with side.working():
        _many(side, warm)
        before = _grown(side)
        _many(side, jobs)
        after = _grown(side)
    grown, all_before = growth(before, after), sum(before.values())
    return {
        "value": 1024 * grown / jobs,
        "jobs": jobs,
        "mb": [round(all_before, 2), round(sum(after.values()), 2)],
        "processes": [len(before), len(after)],
        "percent": round(100 * grown / all_before, 2),
    }


def growth(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Megabytes by which processes have grown, memory being given by pid.

    A child process lives for a thousand jobs, and there are as many as the moment asks for, each with some four
    megabytes: two more of them are no growth. So those that came count as if they were as many as those that went.
    """
    stayed = before.keys() & after.keys()
    went = [before[pid] for pid in before.keys() - stayed]
    came = [after[pid] for pid in after.keys() - stayed]
    renewed = len(went) * (mean(came) - mean(went)) if went and came else 0.0
    return sum(after[pid] - before[pid] for pid in stayed) + renewed


def _many(side: Side, jobs: int) -> None:
    """In parts, as a house works: never all at once in the queue."""
    for done in range(0, jobs, 5000):
        side.run(min(5000, jobs - done))
    side.driver.ask("clear")


def _grown(side: Side) -> dict[int, float]:
    time.sleep(QUIET)
    return {pid: memory_mb([pid], "Private") for pid in _all(side)}


def _all(side: Side) -> list[int]:
    return [pid for root in side.worker_pids() for pid in (root, *tree.descendants(root))]


def idle(side: Side, scale: float) -> Sample:
    """Transactions a second of all workers that have nothing to do, and milliseconds of processor a second."""
    seconds = max(5.0, 10.0 * scale)
    with side.working():
        time.sleep(QUIET)
        before, meter = _transactions(side), side.meter()
        began = time.monotonic()
        time.sleep(seconds)
        spent = meter.spent()
        time.sleep(FLUSHED)
        took = time.monotonic() - began
        count = _transactions(side) - before
    cpu = {f"{part}_ms": round(1000 * used / seconds, 2) for part, used in spent.items()}
    return {"value": max(0, count) / took, "seconds": round(took, 1), **cpu, "load": load_average()}


def _transactions(side: Side) -> int:
    """So far, in the side's database, those of this question not counted; 0 for a side without one."""
    if side.database is None:
        return 0
    with psycopg.connect(side.services.postgres.url_of("postgres"), autocommit=True) as connection:
        name = side.database.rpartition("/")[2]
        text = TRANSACTIONS.replace("current_database()", "%s")
        row = connection.execute(text, [name]).fetchone()
    return int(row[0]) if row else 0


def start(side: Side, scale: float) -> Sample:
    """Seconds from the command to the end of the first job (or the first answer), and the memory when idle (PSS)."""
    began = time.monotonic()
    with side.starting() as taken:
        seconds = taken - began
        time.sleep(QUIET)
        memory_now = memory_mb(_all(side))
        processes = len(_all(side))
    return {"value": seconds, "pss_mb": memory_now, "processes": processes, "load": load_average()}
