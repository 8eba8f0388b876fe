"""Turno's own sides: the embedded profile and the cluster profile, and the three kinds of handlers."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.services import Services
from benchmarks.sides.base import PATIENCE, Setup, Side, python
from tests.kit.processes import PROJECT

EVERYTHING = "job row, attempt row, three state changes"
ASYNC = ("--processes", "2", "--queues", "default:100")

SETUPS = [
    Setup(
        "turno", "embedded, 2 processes × 100 slots, async", EVERYTHING, 30_000, ASYNC, type="bench.async", warm=3000
    ),
    Setup(
        "turno-cluster",
        "RabbitMQ, Redlock and PostgreSQL, 2 processes × 100 slots, async",
        EVERYTHING,
        20_000,
        ASYNC,
        type="bench.async",
        brokered=True,
        warm=3000,
    ),
    Setup(
        "turno-process",
        "embedded, plain def handlers in warm child processes, 1 process × 128 slots",
        EVERYTHING,
        10_000,
        ("--queues", "default:128"),
        type="bench.process",
    ),
    Setup(
        "turno-thread",
        "embedded, plain def handlers in threads, 2 processes × 4 slots",
        EVERYTHING,
        15_000,
        ("--processes", "2", "--queues", "default:4"),
        type="bench.thread",
    ),
]


class TurnoSide(Side):
    """Workers by `manage.py runworker`, as in production but for their intervals' defaults, which stay."""

    def __init__(self, setup: Setup, services: Services) -> None:
        super().__init__(setup, services)
        self._database = "turno_cluster" if setup.brokered else "turno"

    @property
    def database(self) -> str:
        return self.services.database(self._database)

    def environment(self) -> dict[str, str]:
        found = self.base_environment() | {
            "TURNO_DATABASE__URL": self.database,
            "TURNO_HANDLERS": '["benchmarks.handlers"]',
            "TURNO_SAMPLES__ENABLED": "false",
            "TURNO_WORKER__RUN_DIR": str(self.folder / "run"),
            "TURNO_WEB__SECRET_KEY": "k" * 50,
            "TURNO_LANG": "en",
        }
        if self.setup.brokered:
            found |= {
                "TURNO_MESSAGING__TRANSPORT": "rabbitmq",
                "TURNO_MESSAGING__URLS": self.services.rabbitmq.url,
                "TURNO_REDIS__URLS": self.services.redis.url,
            }
        return found | dict(self.setup.env or {})

    def servers(self) -> set[str]:
        return super().servers() | ({"redis"} if self.setup.brokered else set())

    def driver_command(self) -> Sequence[str]:
        return python("benchmarks.turnodriver")

    def worker_commands(self) -> list[list[str]]:
        return [[sys.executable, "manage.py", "runworker", "--name", self.name, *self.setup.arguments]]

    def open(self) -> None:
        migrate = [sys.executable, "manage.py", "migrate", "-v", "0"]
        subprocess.run(migrate, cwd=PROJECT, env=self.environment(), check=True)
        super().open()

    def complete(self, kept: Mapping[str, int], jobs: int) -> str | None:
        wanted = {"jobs": jobs, "attempts": jobs, "changes": 3 * jobs, "others": 0}
        return None if dict(kept) == wanted else f"{dict(kept)} instead of {wanted}"

    def load(self, jobs: int, **options: Any) -> None:
        """In the cluster the messages are with the broker before it returns, as the peers' are: a worker of another
        queue carries them there while this side's are stopped."""
        type_ = "bench.text" if "size" in options else self.setup.type
        self.driver.ask("load", jobs=jobs, **{"type": type_, **options})
        if self.setup.brokered and self.stopped:
            with self._carrier():
                self._until(lambda: self.driver.ask("outbox") == 0, "the broker has all messages")

    @contextmanager
    def _carrier(self) -> Iterator[None]:
        command = [sys.executable, "manage.py", "runworker", "--name", "carrier", "--queues", "carried:1"]
        with (self.folder / "carrier.log").open("ab") as log:
            carrier = subprocess.Popen(command, env=self.environment(), cwd=PROJECT, stdout=log, stderr=log)
        try:
            yield
        finally:
            carrier.terminate()
            carrier.wait(PATIENCE)
