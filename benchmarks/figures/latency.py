"""How long one waits: for the start of a job in an idle house, of a due one, and for a cancel to reach its handler."""

from collections.abc import Sequence

from benchmarks.figure import Sample, scaled
from benchmarks.sides.base import Side
from benchmarks.stats import percentile
from benchmarks.usage import load_average

GAP = 0.04  # seconds between two jobs, about: the one before is long done
LEAD = 2.0  # seconds until the first due instant: all are enqueued by then
WARM = 10


def idle(side: Side, scale: float) -> Sample:
    """From the call that enqueues a job to the first line of its handler, when there is nothing else to do."""
    jobs = scaled(250, scale, 20)
    with side.working():
        side.settle()
        _late(side, WARM, "latency", samples=WARM, gap=GAP)
        meter = side.meter()
        late = _late(side, jobs, "latency", samples=jobs, gap=GAP)
        return _sample(late, "p50") | {"cpu_us": meter.per_job(jobs)}


def scheduled(side: Side, scale: float) -> Sample:
    """From its instant to the first line of its handler, of jobs at random instants of some seconds."""
    jobs = scaled(250, scale, 20)
    with side.working():
        side.settle()
        late = _late(side, jobs, "schedule", jobs=jobs, lead=LEAD, seconds=jobs * GAP)
        return _sample(late, "p99")


def cancel(side: Side, scale: float) -> Sample:
    """From the call that cancels a running job to the end of its handler (async), one after the other."""
    jobs = scaled(100, scale, 10)
    with side.working():
        side.settle()
        began = side.tally.count()
        side.load(jobs, type="bench.cancelled", seconds=600.0)
        side.wait_for(began + jobs)  # all run
        cancelled: dict[str, float] = side.driver.ask("cancel", gap=GAP)
        side.wait(began + 2 * jobs)
        ended = side.tally.notes()
        assert ended.keys() == cancelled.keys(), f"{len(ended)} of {len(cancelled)} handlers were told"
        return _sample([1000 * (ended[job] - asked) for job, asked in cancelled.items()], "p99")


def _late(side: Side, jobs: int, verb: str, /, **arguments: float) -> list[float]:
    """How late each was, in milliseconds."""
    side.tally.lateness()
    before = side.tally.count()
    side.driver.ask(verb, **arguments)
    side.wait(before + jobs)
    late = side.tally.lateness()
    assert len(late) == jobs, f"{side.name}: {len(late)} of {jobs} jobs have said how late they were"
    return late


def _sample(late: Sequence[float], value: str) -> Sample:
    shown = {"p50": round(percentile(late, 50), 2), "p99": round(percentile(late, 99), 2), "worst": round(max(late), 2)}
    return {"value": shown[value], **shown, "jobs": len(late), "load": load_average()}
