"""The figures of the programs that stand beside this one: what a child process costs, and what viewers do."""

from benchmarks.figure import Sample, scaled
from benchmarks.sides.alone import AloneSide
from benchmarks.sides.base import Side
from benchmarks.usage import load_average

CROWD = 50
PAGE = "/painel/"


def isolation(side: Side, scale: float) -> Sample:
    """Milliseconds a job: in a warm child; beside it in a fresh one, in a thread, and as a share of four at once."""
    assert isinstance(side, AloneSide)
    [line] = side.lines("benchmarks.isolation")
    others = {name: line[name] for name in ("fresh", "thread", "parallel", "child_mb", "forkserver_mb")}
    return {"value": line["warm"], **others, "load": load_average()}


def viewers(side: Side, scale: float) -> Sample:
    """How many times as many statements a crowd before the overview costs as one viewer does, in the same time."""
    assert isinstance(side, AloneSide)
    crowd, jobs, seconds = scaled(CROWD, scale, 3), scaled(50_000, scale, 1000), max(8.0, 20.0 * scale)
    lines = side.lines(
        "benchmarks.viewers",
        *("--jobs", str(jobs), "--viewers", str(crowd), "--seconds", f"{seconds:.0f}", "--pages", PAGE),
    )
    one, many = sorted(lines, key=lambda line: line["viewers"])
    each = [line["statements"] / line["seconds"] for line in (one, many)]
    return {"value": each[1] / each[0], "one": each[0], "crowd": each[1], "load": load_average()}
