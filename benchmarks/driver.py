"""A program's own process, which enqueues: commands and answers are JSON lines on its two pipes.

Standard library only: the peers' drivers run in an environment of their own. `serve` is the driver's side, `Driver` the
benchmark's. A verb is a function of keyword arguments whose answer is JSON.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def serve(verbs: Mapping[str, Callable[..., Any]]) -> None:
    """Answer until the pipe is closed. What programs print goes to the error stream, past the answers."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"answer": verbs[asked.pop("do")](**asked)}
        except Exception:  # noqa: BLE001  (whoever asked hears of it)
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")


def resting(url: str) -> str:
    """A broker's address for a connection that may rest for as long as other sides are measured: without heartbeats,
    which only a library at work would answer (the broker ends a connection that lets two of them pass)."""
    return f"{url}{'&' if '?' in url else '?'}heartbeat=0"


class DriverError(Exception):
    """A driver could not do what it was asked; the message is its traceback."""


class Driver:
    """The other side: `ask("load", jobs=1000)`."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> None:
        self._log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                list(command),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    @property
    def pid(self) -> int:
        """Of the driver's process."""
        return self._process.pid

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer. Raises DriverError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise DriverError(f"{do}: the driver ended:\n{self._log.read_text(errors='replace')[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise DriverError(f"{do}: {answer['error']}")
        return answer["answer"]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
