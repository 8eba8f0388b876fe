"""A side of a comparison: a program in one configuration, with its driver, its workers and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from benchmarks import tally
from benchmarks.driver import Driver
from benchmarks.services import Services
from benchmarks.usage import Meter
from tests.kit.processes import PROJECT
from workers import tree

PATIENCE = 300.0  # seconds for any one step
LOOK = 0.005  # seconds between two looks
STOP_PATIENCE = 15.0  # seconds for workers to end by themselves


@dataclass(frozen=True)
class Setup:
    """One configuration: what is started, in words for the table, and how many jobs make a measure of some seconds:
    `jobs` a drain, `singly` and `at_once` what enqueues them one by one and in bulk, `warm` what comes before a drain.

    `arguments` of the worker command ("{number}" is its number), `processes` of them; `type` of the jobs that a drain
    runs; `env` of all. `served`: a web process stands between the caller and the jobs.
    """

    name: str
    words: str
    keeps: str
    jobs: int
    arguments: tuple[str, ...] = ()
    processes: int = 1
    type: str = ""
    env: Mapping[str, str] | None = None
    brokered: bool = False
    served: bool = False
    warm: int = 1000
    singly: int = 2000
    at_once: int = 30_000


class Side(ABC):
    """A setup at work on some services; `open` it, and ask the driver. Subclasses say how the two programs start."""

    def __init__(self, setup: Setup, services: Services) -> None:
        self.setup, self.services = setup, services
        self.name = setup.name
        self.folder = services.folder / setup.name
        self.tally = tally.Tally(self.folder / "tally")
        self.warm = setup.warm
        self._stack = ExitStack()
        self._workers: list[subprocess.Popen[bytes]] = []
        self.stopped = False

    # What a program has of its own.

    @property
    @abstractmethod
    def database(self) -> str | None:
        """The database's address; None for a program without one."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Of the driver and of the workers."""

    @abstractmethod
    def driver_command(self) -> Sequence[str]:
        """What starts the driver."""

    @abstractmethod
    def worker_commands(self) -> list[list[str]]:
        """What starts each of the workers."""

    @abstractmethod
    def complete(self, kept: Mapping[str, int], jobs: int) -> str | None:
        """What is wrong with the rows that were kept of so many jobs, if anything is."""

    def servers(self) -> set[str]:
        """The servers that it uses, by the names of `Services.pids`."""
        found = {"postgres"} if self.database else set[str]()
        return found | ({"rabbitmq"} if self.setup.brokered else set())

    # What is the same for all.

    def base_environment(self) -> dict[str, str]:
        """The caller's, without what would configure Turno or Django, and where handlers note that they ran."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_", "PYTHON"))
        }
        return kept | {tally.VARIABLE: str(self.tally.folder), "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}

    def open(self) -> None:
        """Start the driver."""
        self.tally.folder.mkdir(parents=True, exist_ok=True)
        self.driver = Driver(self.driver_command(), self.environment(), PROJECT, self.folder / "driver.log")
        self._stack.callback(self.driver.close)
        self.driver.ask("clear")  # its tables are there now

    def close(self) -> None:
        """End all that was started."""
        self._stack.close()

    def settle(self) -> None:
        """VACUUM ANALYZE, where there is a database."""
        if self.database:
            self.services.settle(self.database)

    @contextmanager
    def working(self) -> Iterator[None]:
        """With workers, warm: they have done `warm` jobs, which are forgotten."""
        try:
            self._start_workers()
            self.ready()
            yield
        finally:
            self._end_workers()

    def _start_workers(self) -> None:
        for number, command in enumerate(self.worker_commands()):
            with (self.folder / f"worker-{number}.log").open("ab") as log:
                self._workers.append(
                    subprocess.Popen(command, env=self.environment(), cwd=PROJECT, stdout=log, stderr=log)
                )

    def ready(self) -> None:
        """Returns when the workers have warmed up, and nothing is left of it."""
        self.driver.ask("clear")
        self.run(self.warm)
        self.driver.ask("clear")

    @contextmanager
    def starting(self) -> Iterator[float]:
        """Started for a single job that waits already; the instant at which it had run, by the monotonic clock."""
        self.driver.ask("clear")
        before = self.tally.count()
        self.load(1)
        try:
            self._start_workers()
            self.wait_for(before + 1)
            yield time.monotonic()
        finally:
            self._end_workers()

    def load(self, jobs: int, **options: Any) -> None:
        """Enqueue so many, which is none of what is measured."""
        self.driver.ask("load", jobs=jobs, **options)

    def run(self, jobs: int) -> None:
        """Enqueue so many and wait until all are done."""
        before = self.tally.count()
        self.load(jobs)
        self.wait(before + jobs)

    def wait_for(self, count: int) -> None:
        """Returns when handlers have run so often in all."""
        self._until(lambda: self.tally.count() >= count, f"{count} handlers have run")

    def wait(self, count: int) -> None:
        """Returns when handlers have run so often in all, and every job is settled."""
        self.wait_for(count)
        self._until(lambda: self.driver.ask("left") == 0, "all jobs are settled")

    def _until(self, probe: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + PATIENCE
        while not probe():
            self._check()
            assert time.monotonic() < limit, f"{self.name}: waited in vain until {what}\n{self.log()[-3000:]}"
            time.sleep(LOOK)

    def _check(self) -> None:
        for worker in self._workers:
            assert worker.poll() is None, f"{self.name}: a worker ended\n{self.log()[-3000:]}"

    def log(self) -> str:
        """What the workers have said."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("worker-*.log")))

    def worker_pids(self) -> list[int]:
        """The roots of the workers' trees."""
        return [worker.pid for worker in self._workers]

    def meter(self, *, driver: bool = False) -> Meter:
        """Of the workers and of each server that the side uses, from now on; of the `driver` too, if asked for."""
        servers = {name: pids for name, pids in self.services.pids().items() if name in self.servers()}
        own = {"workers": self.worker_pids()} if self._workers else {}
        return Meter(own | ({"driver": [self.driver.pid]} if driver else {}) | servers)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """With workers that do nothing, since they are stopped (SIGSTOP): all have the same start of a drain."""
        stopped: list[int] = []
        try:
            for root in self.worker_pids():
                for pid in (root, *tree.descendants(root)):
                    _send(pid, signal.SIGSTOP)
                    stopped.append(pid)
            self.stopped = True
            yield
        finally:
            self.stopped = False
            for pid in reversed(stopped):
                _send(pid, signal.SIGCONT)

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            try:
                worker.wait(STOP_PATIENCE)
            except subprocess.TimeoutExpired:
                tree.kill_tree(worker.pid)
                worker.wait()
        self._workers = []


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def python(module: str) -> list[str]:
    """This Python, on a module."""
    return [sys.executable, "-m", module]
