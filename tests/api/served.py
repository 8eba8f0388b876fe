"""A real daphne of the test's own, on the test database."""

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.api.client import KEY
from tests.kit.processes import PROJECT, database_url, eventually


class Served:
    """The process and a way to ask it."""

    def __init__(self, process: subprocess.Popen, port: int) -> None:
        self.process = process
        self.port = port

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers (lower case) and JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"X-Turno-Key": KEY} | (headers or {}))
            response = connection.getresponse()
            raw = response.read()
            named = {name.lower(): value for name, value in response.getheaders()}
            return response.status, named, json.loads(raw) if raw else None
        finally:
            connection.close()

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], Any]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"} | given)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[Served]:
    """Start daphne and wait until it lives; it is ended with the block."""
    port = free_port()
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
    settings = {"TURNO_DATABASE__URL": database_url(), "TURNO_API__KEY": KEY, **environment}
    log = (folder / "daphne.log").open("wb")
    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "turno.asgi:application"]
    process = subprocess.Popen(command, cwd=PROJECT, env=ours | settings, stdout=log, stderr=log)
    served = Served(process, port)

    def lives() -> bool:
        assert process.poll() is None, (folder / "daphne.log").read_text()[-3000:]
        try:
            return served.ask("GET", "/health/live")[0] == 200
        except OSError:
            return False

    try:
        eventually(lives, "daphne lives")
        yield served
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(60)
        log.close()
