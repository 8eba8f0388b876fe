"""Real worker processes for the tests, on the test database, with short intervals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.db import connections

from workers import tree
from workers.clock import boottime

PROJECT = Path(__file__).resolve().parent.parent.parent
SHORT = {
    # Longer than any pause of a busy machine: a test in which a lease must run out says so (LAPSING).
    "TURNO_WORKER__LEASE_DURATION": "60s",
    "TURNO_WORKER__LEASE_RENEWAL_INTERVAL": "500ms",
    "TURNO_WORKER__HEARTBEAT_INTERVAL": "500ms",
    "TURNO_WORKER__SILENT_AFTER": "1s",
    "TURNO_WORKER__LEADERSHIP_LEASE": "1s",
    "TURNO_WORKER__POLL_INTERVAL": "200ms",
    "TURNO_WORKER__CANCEL_POLL_INTERVAL": "200ms",
    "TURNO_WORKER__PROGRESS_INTERVAL": "100ms",
    "TURNO_WORKER__RECONNECT_MAX": "500ms",
    "TURNO_SCHEDULER__INTERVAL": "300ms",
    "TURNO_RECOVERY__INTERVAL": "300ms",
    "TURNO_RECOVERY__LEASE_GRACE_PERIOD": "1s",
    "TURNO_RESILIENCE__BACKOFF_BASE": "200ms",
}
LAPSING = {"TURNO_WORKER__LEASE_DURATION": "3s"}  # what nobody renews is soon lost


def eventually(probe: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """Ask until the answer is true; fail, naming `what`, when that takes longer than `seconds`."""
    limit = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        assert time.monotonic() < limit, f"waited {seconds:g} s in vain: {what}"
        time.sleep(0.03)


def database_url() -> str:
    """The URL of the database that this test run uses."""
    settings = connections["default"].settings_dict
    user, password = settings["USER"], settings["PASSWORD"]
    login = f"{user}:{password}@" if password else f"{user}@"
    return f"postgresql://{login}{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"


class WorkerProcess:
    """A `manage.py runworker` of the test's own: a supervisor, its worker, and what is below. Events come from its log.

    `process` is the supervisor, whom a service manager would signal; `pid` is the worker's that is ready, or was last.
    """

    def __init__(self, folder: Path, name: str, queues: str, env: Mapping[str, str], *arguments: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._file = self.log.open("ab")
        command = [sys.executable, "manage.py", "runworker", "--queues", queues, "--name", name, *arguments]
        self.process = subprocess.Popen(command, cwd=PROJECT, env=dict(env), stderr=self._file, stdout=self._file)

    @property
    def supervisor_pid(self) -> int:
        return self.process.pid

    @property
    def pid(self) -> int:
        return int(self.events("worker.ready")[-1]["pid"])

    def tree(self) -> list[int]:
        """The living processes below the supervisor: the worker, its forkserver, children, whatever they started."""
        return tree.descendants(self.process.pid)

    def forkserver(self) -> int:
        """The pid of the worker's forkserver."""
        [pid] = tree.children(self.pid)
        return pid

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The log's events, all or those of one name."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                event = json.loads(line)
                if name in (None, event["event"]):
                    found.append(event)
        return found

    def wait_ready(self, times: int = 1) -> "WorkerProcess":
        """Returns when a worker has been ready for the `times`-th time: the supervisor starts it again."""

        def ready() -> bool:
            assert self.process.poll() is None, f"{self.name} ended:\n{self.log.read_text()[-3000:]}"
            return len(self.events("worker.ready")) >= times

        eventually(ready, f"{self.name} is ready", 120)
        return self

    def signal(self, number: int) -> None:
        """Signal the supervisor, as a service manager does."""
        self.process.send_signal(number)

    def kill_worker(self) -> int:
        """SIGKILL the worker; its pid."""
        os.kill(pid := self.pid, signal.SIGKILL)
        return pid

    def freeze_worker(self) -> int:
        """SIGSTOP the worker alone; its pid, for `thaw`."""
        os.kill(pid := self.pid, signal.SIGSTOP)
        return pid

    def freeze(self) -> int:
        """SIGSTOP the worker and its supervisor; the worker's pid. What is below the worker goes on."""
        pid = self.freeze_worker()
        self.signal(signal.SIGSTOP)
        return pid

    def wait(self, seconds: float = 120.0) -> int:
        """The supervisor's exit code, when it ends within `seconds`."""
        return self.process.wait(seconds)

    def close(self) -> None:
        if self.process.poll() is None:
            tree.kill_tree(self.process.pid)
            self.process.wait(60)
        self._file.close()


def thaw(pid: int) -> float:
    """SIGCONT a process, if it still is one; the instant before it, on CLOCK_BOOTTIME."""
    now = boottime()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    return now


class Fleet:
    """The workers of one test; they and all that they started are ended with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.probe_log = folder / "probe.log"
        self.workers: list[WorkerProcess] = []
        self._mark = f"PROBE_FLEET={uuid4()}"
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("TURNO_", "DJANGO_"))},
            **SHORT,
            "TURNO_DATABASE__URL": database_url(),
            "TURNO_HANDLERS": '["tests.kit.handlers", "tests.kit.beats"]',
            "TURNO_SAMPLES__ENABLED": "false",
            "TURNO_WORKER__RUN_DIR": str(folder / "run"),  # of its own: other test runs have workers here too
            "PROBE_LOG": str(self.probe_log),
            "PYTHONPATH": str(PROJECT),
            **dict([self._mark.split("=")]),
        }

    def start(self, name: str = "a", queues: str = "default:4", *arguments: str, **env: str) -> WorkerProcess:
        """Start a worker and go on at once; `wait_ready` waits for it."""
        mark = {"PROBE_WORKER": name}
        worker = WorkerProcess(self.folder, name, queues, self.env | mark | env, *arguments)
        self.workers.append(worker)
        return worker

    def living(self, name: str | None = None) -> list[int]:
        """The processes that live of all that the fleet's workers (or the one of this name) ever started."""
        marks = {self._mark.encode()} | ({f"PROBE_WORKER={name}".encode()} if name else set())
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                environment = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
                if marks <= set(environment.split(b"\0")) and tree.alive(int(folder.name)):
                    found.append(int(folder.name))
        return found

    def lines(self, word: str) -> list[list[str]]:
        """The probe log's lines that begin with `word`, split: word, key, execution, pid, instant."""
        if not self.probe_log.exists():
            return []
        return [parts for line in self.probe_log.read_text().splitlines() if (parts := line.split())[0] == word]

    def starts(self, key: str | None = None) -> list[list[str]]:
        """The start lines, all or those of one key."""
        return [parts for parts in self.lines("start") if key in (None, parts[1])]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def fleet_of(folder: Path) -> Iterator[Fleet]:
    """The body of the fixture `fleet`."""
    fleet = Fleet(folder)
    try:
        yield fleet
    finally:
        fleet.close()
