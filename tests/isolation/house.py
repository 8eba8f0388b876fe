"""A pool of child processes of a test's own: executions go in, ends come out; no database."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from jobs.outcomes import Claim, Ending
from jobs.registry import catalogue
from tests.kit.processes import eventually
from workers import tree
from workers.clock import boottime
from workers.context import WorkerContext
from workers.execution import Execution, prepare
from workers.isolation import ForkServer, ProcessPool
from workers.leases import Held


def claim_of(type_: str, payload: dict[str, Any], **fields: Any) -> Claim:
    """What a worker would have claimed."""
    values: dict[str, Any] = {
        "slot": 1,
        "execution": 1,
        "attempts_used": 0,
        "max_attempts": 3,
        "lost_count": 0,
        "timeout": None,
        "at_most_once": False,
    }
    claimed = datetime.now(UTC)
    return Claim(uuid4(), uuid4(), type_, "default", payload, claimed_at=claimed, **(values | fields))


class House:
    """The pool, what it was given, and what came of it."""

    def __init__(self) -> None:
        self.server = ForkServer.fork()
        self.first_server = self.server.pid
        types = [name for name in catalogue.names() if name.startswith("iso.")]
        self.pool = ProcessPool(self.server, self._done, types)
        self._changed = threading.Condition()
        self._ends: dict[Held, Ending] = {}
        self._times: dict[Held, int] = {}
        self.dirty: list[WorkerContext] = []
        self.pool.start()

    def _done(self, execution: Execution, ending: Ending) -> None:
        with self._changed:
            execution.held.end()
            self._ends[execution.held] = ending
            self._times[execution.held] = self._times.get(execution.held, 0) + 1
            self._changed.notify_all()

    def start(self, type_: str, payload: dict[str, Any] | None = None, lease: float = 600.0, **fields: Any) -> Held:
        """Start a job and go on at once."""
        held = Held(claim_of(type_, payload or {}, **fields), boottime() + lease)
        self.pool.start_all([prepare(held, self.dirty.append)])
        return held

    def end(self, held: Held, seconds: float = 60.0) -> Ending:
        """How it ended; waits for that, and sees that it was told once."""
        with self._changed:
            assert self._changed.wait_for(lambda: held in self._ends, seconds), f"{held.claim.type} did not end"
            assert self._times[held] == 1
            return self._ends[held]

    def ended(self, held: Held) -> bool:
        return held in self._ends

    def run(self, type_: str, payload: dict[str, Any] | None = None, **fields: Any) -> Ending:
        """Run a job to its end."""
        return self.end(self.start(type_, payload, **fields))

    def result(self, type_: str, payload: dict[str, Any] | None = None, **fields: Any) -> Any:
        """The result of a job that succeeds."""
        ending = self.run(type_, payload, **fields)
        assert ending.result is not None, ending
        return json.loads(ending.result)

    def forget(self) -> None:
        """Drop what is known of jobs that have ended, for tests of memory."""
        with self._changed:
            self._ends.clear()
            self._times.clear()
            self.dirty.clear()

    def close(self) -> None:
        assert self.pool.close()


def told(path: Path, lines: int = 1) -> list[str]:
    """The lines that a handler wrote, when there are that many."""

    def enough() -> list[str] | None:
        found = path.read_text().splitlines() if path.exists() else []
        return found if len(found) >= lines and path.read_text().endswith("\n") else None

    return eventually(enough, f"{lines} lines in {path.name}")


def gone(pids: list[str] | list[int], seconds: float = 60.0) -> None:
    """None of these processes lives, at the latest after `seconds`."""
    eventually(lambda: not [p for p in pids if tree.alive(int(p))], f"{pids} are gone", seconds)


def zombies(parent: int) -> list[int]:
    """The children of `parent` that nobody has reaped."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            if fields[0] == "Z" and int(fields[1]) == parent:
                found.append(int(folder.name))
    return found


def files_of(pid: int | str = "self") -> int:
    """How many files a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
