"""The sides behind a web process: Turno's API, and a bare endpoint that inserts one row."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any

import psycopg

from benchmarks.services import Services
from benchmarks.sides.base import Setup, Side, python
from benchmarks.sides.turno import TurnoSide
from turno.launcher import ports

HOST = "127.0.0.1"
BARE = "CREATE TABLE IF NOT EXISTS public.bare (id bigserial PRIMARY KEY, type text, payload jsonb, at timestamptz)"
CONNECTIONS = "16 connections, one web process (daphne)"
SETUPS = [
    Setup(
        "turno-http", f"POST /api/jobs and /api/jobs/batch, {CONNECTIONS}", "job row, a state change", 0, served=True
    ),
    Setup("bare-http", f"a bare ninja endpoint that inserts one row, {CONNECTIONS}", "a row", 0, served=True),
]


class WebSide(TurnoSide):
    """A server instead of workers, and a driver that sends requests."""

    application, table, alive = "turno.asgi:application", "turno.jobs", "/health/live"

    def __init__(self, setup: Setup, services: Services) -> None:
        super().__init__(setup, services)
        self._port = ports.free_port()

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            "BENCHMARK_URL": f"{HOST}:{self._port}",
            "BENCHMARK_DATABASE": self.database,
            "BENCHMARK_TABLE": self.table,
            "TURNO_API__KEY": "",
        }

    def driver_command(self) -> Sequence[str]:
        return python("benchmarks.httpdriver")

    def worker_commands(self) -> list[list[str]]:
        return [[sys.executable, "-m", "daphne", "-b", HOST, "-p", str(self._port), self.application]]

    def complete(self, kept: Mapping[str, int], jobs: int) -> str | None:
        return None

    def load(self, jobs: int, **options: Any) -> None:
        """Nobody works here: there is nothing that could wait."""

    def ready(self) -> None:
        self._until(self._answers, "the server answers")

    def _answers(self) -> bool:
        connection = HTTPConnection(HOST, self._port, timeout=10)
        try:
            connection.request("GET", self.alive)
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    @contextmanager
    def starting(self) -> Iterator[float]:
        """Started; the instant of the first answer."""
        try:
            self._start_workers()
            self.ready()
            yield time.monotonic()
        finally:
            self._end_workers()


class BareSide(WebSide):
    """The same with a server that does next to nothing."""

    application, table, alive = "benchmarks.bare:application", "public.bare", "/api/health/live"

    def open(self) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(BARE)
        Side.open(self)


def web_side(setup: Setup, services: Services) -> WebSide:
    """The side of a setup of these."""
    return (BareSide if setup.name == "bare-http" else WebSide)(setup, services)
