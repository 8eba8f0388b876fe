"""The sides that are a program with a house of their own: `python -m benchmarks.isolation`, `.viewers`."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.sides.base import PATIENCE, Setup, Side, python
from tests.kit.processes import PROJECT

SETUPS = [
    Setup("turno-children", "child processes and threads without a database", "nothing", 0),
    Setup("turno-crowd", "one web process, the demonstration alive", "what the demonstration keeps", 0),
]


class AloneSide(Side):
    """No driver and no workers: `lines` runs the program."""

    def open(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def close(self) -> None:
        """Nothing runs on."""

    @property
    def database(self) -> str | None:
        return None

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
        return kept | {"DJANGO_SETTINGS_MODULE": "turno.settings", "PYTHONPATH": str(PROJECT)}

    def driver_command(self) -> Sequence[str]:
        return []

    def worker_commands(self) -> list[list[str]]:
        return []

    def complete(self, kept: Mapping[str, int], jobs: int) -> str | None:
        return None

    def lines(self, module: str, *arguments: str) -> list[dict[str, Any]]:
        """The JSON lines that it prints. Raises AssertionError with its error stream when it fails."""
        done = subprocess.run(
            [*python(module), *arguments],
            cwd=PROJECT,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{module}: {done.stderr[-3000:]}"
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
