"""Which figures there are, on which sides: `FIGURES` by name, and what makes a side of a name."""

from collections.abc import Callable
from functools import partial

from benchmarks.figure import Figure
from benchmarks.figures import drain, enqueue, keys, latency, scripts, upkeep
from benchmarks.services import Services
from benchmarks.sides import alone, peers, turno, web
from benchmarks.sides.base import Side

TURNO = ("turno", "turno-cluster")
ALL_PEERS = (
    "celery-prefork", "celery-solo", "celery-results", "dramatiq", "procrastinate", "pgqueuer", "pgqueuer-default",
)  # fmt: skip
IDLERS = ("celery-solo", "dramatiq", "procrastinate", "pgqueuer")
SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
LONG = frozenset({"million"})  # not in "all"

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "drain",
            "jobs a second of a full queue, no-op handlers",
            "/s",
            (*TURNO, "turno-process", "turno-thread", *ALL_PEERS),
            drain.drain,
        ),
        Figure(
            "enqueue", "jobs a second, one by one", "/s", (*TURNO, "celery-prefork", *IDLERS[1:]), enqueue.one_by_one
        ),
        Figure(
            "bulk",
            "jobs a second, a thousand at a time",
            "/s",
            (*TURNO, "turno-http", "celery-prefork", "procrastinate", "pgqueuer"),
            enqueue.bulk,
        ),
        Figure("http", "POST a second", "/s", ("turno-http", "bare-http"), enqueue.one_by_one),
        Figure(
            "latency",
            "from enqueue to the handler in an idle house, p50",
            "ms",
            (*TURNO, *IDLERS),
            latency.idle,
            less=True,
            extra=("p99", "worst"),
        ),
        Figure(
            "scheduled", "from the instant to the handler, p99", "ms", TURNO, latency.scheduled, True, ("p50", "worst")
        ),
        Figure(
            "cancel", "from the call to the handler's end, p99", "ms", TURNO, latency.cancel, True, ("p50", "worst")
        ),
        Figure("keys", "part of the ideal, 10 keys, 20 ms a job", "", TURNO, keys.keys),
        *(
            Figure(
                f"payload-{name}",
                f"drain with {size:,} bytes a job",
                "/s",
                ("turno", "celery-prefork", "procrastinate", "pgqueuer"),
                partial(drain.drain, size=size),
            )
            for name, size in SIZES.items()
        ),
        Figure(
            "memory",
            "growth of the workers a job, 50,000 jobs after 10,000",
            "KB",
            ("turno", "turno-process"),
            upkeep.memory,
            True,
            ("percent",),
        ),
        Figure(
            "million", "growth by 1,000,000 jobs after 10,000", "KB", ("turno",), upkeep.million, True, ("percent",)
        ),
        Figure(
            "idle",
            "transactions of an idle house",
            "/s",
            (*TURNO, "procrastinate", "pgqueuer"),
            upkeep.idle,
            True,
            ("workers_ms",),
        ),
        Figure(
            "isolation",
            "a no-op from the worker's hands to its end in a warm child",
            "ms",
            ("turno-children",),
            scripts.isolation,
            True,
            ("fresh", "thread", "parallel"),
        ),
        Figure(
            "viewers",
            "statements that 50 open screens cost, against those of one",
            "×",
            ("turno-crowd",),
            scripts.viewers,
            True,
            ("one", "crowd"),
        ),
        Figure(
            "start",
            "from the command to the first job's end, or answer",
            "s",
            ("turno-process", "turno-http", "celery-prefork", "dramatiq", "procrastinate", "pgqueuer"),
            upkeep.start,
            True,
            ("pss_mb", "processes"),
        ),
    )
}


def makers(services: Services) -> dict[str, Callable[[], Side]]:
    """What makes each side, by name. A peer's makes their environment first, where that is not there."""
    found: dict[str, Callable[[], Side]] = {}
    for setup in turno.SETUPS:
        found[setup.name] = partial(turno.TurnoSide, setup, services)
    for setup in web.SETUPS:
        found[setup.name] = partial(web.web_side, setup, services)
    for setup in alone.SETUPS:
        found[setup.name] = partial(alone.AloneSide, setup, services)
    for peer in peers.PEERS:
        found[peer.setup.name] = partial(peers.peer_side, peer, services)
    return found


def chosen(figure: Figure, *, only: frozenset[str], profile: str) -> list[str]:
    """The figure's sides that are asked for. `only`: names, "turno*" for all of Turno's; none means all."""
    found = []
    for name in figure.sides:
        ours = name.startswith("turno")
        clustered = name == "turno-cluster"
        if ours and profile != "both" and clustered != (profile == "cluster"):
            continue
        if only and name not in only and not (ours and "turno*" in only):
            continue
        found.append(name)
    return found


def words() -> dict[str, tuple[str, str]]:
    """The configuration of each side in words, and what it keeps, by name."""
    setups = [*turno.SETUPS, *web.SETUPS, *alone.SETUPS, *(peer.setup for peer in peers.PEERS)]
    return {setup.name: (setup.words, setup.keeps) for setup in setups}
