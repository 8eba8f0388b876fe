"""The peers' sides: which program in which configuration, each the best that was found (docs/decisions/0064)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.services import Services
from benchmarks.sides.base import Setup, Side
from tests.kit.processes import PROJECT
from turno.launcher import install
from turno.launcher.paths import venv_python
from turno.launcher.say import Console

VENV = PROJECT / ".venv-peers"
REQUIREMENTS = PROJECT / "benchmarks" / "peers" / "requirements.txt"
NOTHING = "nothing"
CELERY = ("-m", "celery", "-A", "benchmarks.peers.with_celery", "worker", "--loglevel", "WARNING")
QUIET = ("--hostname", "worker{number}@localhost", "--without-gossip", "--without-mingle", "--without-heartbeat")
PREFORK = (*CELERY, "--pool", "prefork", "--concurrency", "4", *QUIET)


@dataclass(frozen=True)
class Peer:
    """A setup, the module of its driver, its database's name (None: it has none), and what must be kept of N jobs."""

    setup: Setup
    driver: str
    database: str | None = None
    kept: Callable[[int], Mapping[str, int]] = lambda _jobs: {}


PEERS = [
    Peer(
        Setup("celery-prefork", "acks late, prefork 4", NOTHING, 10_000, PREFORK, brokered=True, at_once=3000),
        "with_celery",
    ),
    Peer(
        Setup(
            "celery-solo", "acks late, 2 × solo", NOTHING, 20_000, (*CELERY, "--pool", "solo", *QUIET), 2, brokered=True
        ),
        "with_celery",
    ),
    Peer(
        Setup(
            "celery-results",
            "acks late, prefork 4, results in PostgreSQL",
            "a row at the end",
            2_000,
            PREFORK,
            env={"BENCHMARK_RESULTS": "{database}", "BENCHMARK_QUEUE": "celery-results"},
            brokered=True,
            warm=300,
        ),
        "with_celery",
        "celery",
        lambda jobs: {"results": jobs},
    ),
    Peer(
        Setup(
            "dramatiq",
            "2 processes × 1 thread",
            NOTHING,
            20_000,
            ("-m", "dramatiq", "benchmarks.peers.with_dramatiq", "--processes", "2", "--threads", "1"),
            brokered=True,
            env={"dramatiq_queue_prefetch": "100"},
        ),
        "with_dramatiq",
    ),
    Peer(
        Setup(
            "procrastinate",
            "2 processes × 20 jobs",
            "job row, three events",
            3_000,
            ("-m", "benchmarks.peers.with_procrastinate", "worker"),
            2,
            env={"BENCHMARK_CONCURRENCY": "20"},
            warm=300,
        ),
        "with_procrastinate",
        "procrastinate",
        lambda jobs: {"jobs": jobs, "events": 3 * jobs, "others": 0},
    ),
    Peer(
        Setup(
            "pgqueuer",
            "2 processes, batch 200",
            "three rows of a log",
            40_000,
            ("-m", "benchmarks.peers.with_pgqueuer", "worker"),
            2,
            env={"BENCHMARK_BATCH": "200"},
        ),
        "with_pgqueuer",
        "pgqueuer",
    ),
    Peer(
        Setup(
            "pgqueuer-default",
            "2 processes, batch 10",
            "three rows of a log",
            15_000,
            ("-m", "benchmarks.peers.with_pgqueuer", "worker"),
            2,
        ),
        "with_pgqueuer",
        "pgqueuer",
    ),
]


def ensure_peers() -> Path:
    """The Python of the peers' environment, which is made when it is not there, or not of these requirements."""
    install.ensure(VENV, [REQUIREMENTS], VENV.with_name(f"{VENV.name}.log"), Console(), exact=True)
    return venv_python(VENV)


def peer_side(peer: Peer, services: Services) -> "PeerSide":
    """The side of a peer, once their environment is there."""
    return PeerSide(peer, services, ensure_peers())


class PeerSide(Side):
    """A peer's driver and workers, by the Python of its environment."""

    def __init__(self, peer: Peer, services: Services, python: Path) -> None:
        super().__init__(peer.setup, services)
        self._peer, self._python = peer, str(python)

    @property
    def database(self) -> str | None:
        return self.services.database(self._peer.database) if self._peer.database else None

    def environment(self) -> dict[str, str]:
        found = self.base_environment()
        if self.setup.brokered:
            found["BENCHMARK_BROKER"] = self.services.rabbitmq.url
        if self.database:
            found["BENCHMARK_DATABASE"] = self.database
        more = {name: text.format(database=self.database) for name, text in (self.setup.env or {}).items()}
        return found | more

    def driver_command(self) -> Sequence[str]:
        return [self._python, "-m", f"benchmarks.peers.{self._peer.driver}"]

    def worker_commands(self) -> list[list[str]]:
        numbered = [
            [text.format(number=number) for text in self.setup.arguments] for number in range(self.setup.processes)
        ]
        return [[self._python, *arguments] for arguments in numbered]

    def complete(self, kept: Mapping[str, int], jobs: int) -> str | None:
        wanted = dict(self._peer.kept(jobs))
        return None if not wanted or dict(kept) == wanted else f"{dict(kept)} instead of {wanted}"
