"""Processes that stand where a worker stood: they hold its lock file, fork, start programs, and die as told."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

from jobs import presence
from jobs.ids import new_id
from tests.kit.processes import PROJECT, eventually
from workers import identity, orphans, runfiles, tree

# What a worker does first: lock, and mark what it will start. `fork()` is True in the child; `program` execs.
BEGIN = """
import os, signal, subprocess, sys, time
from uuid import UUID
import django
django.setup()
from workers import identity, protocol, runfiles
worker_id, folder = UUID(sys.argv[1]), sys.argv[2]
lock = runfiles.hold(worker_id)
os.environ[protocol.WORKER_VARIABLE] = str(worker_id)
def fork():
    return os.fork() == 0
def program(code="import time; time.sleep(600)", **options):
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **options)
def stop():
    os.kill(os.getpid(), signal.SIGSTOP)
"""
END = """
open(os.path.join(folder, f"{worker_id}.begun"), "w").close()
while True:
    time.sleep(600)
"""


class StandIn:
    """One of them: `worker_id`, and the process."""

    def __init__(self, worker_id: UUID, process: subprocess.Popen[bytes]) -> None:
        self.worker_id = worker_id
        self.process = process
        self.started = identity.start_time(process.pid)

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self, *, reap: bool = True) -> None:
        """SIGKILL; without `reap` it stays a zombie."""
        self.process.kill()
        if reap:
            self.process.wait(60)
        else:
            eventually(lambda: not tree.alive(self.pid), "it is a zombie")


class Processes:
    """What a test started; `close` ends all of it, and whatever of it lost its parents."""

    def __init__(self, folder: Path, run_dir: Path) -> None:
        self.folder = folder
        self.run_dir = run_dir
        self._standing: list[StandIn] = []

    def worker(self, body: str = "", worker_id: UUID | None = None, **env: str) -> StandIn:
        """A process that holds the lock of a worker, after it has run `body`."""
        worker_id = worker_id or new_id()
        arguments = [sys.executable, "-c", BEGIN + body + END, str(worker_id), str(self.folder)]
        own = {"TURNO_WORKER__RUN_DIR": str(self.run_dir), "DJANGO_SETTINGS_MODULE": "tests.settings"}
        process = subprocess.Popen(arguments, cwd=PROJECT, env={**os.environ, **own, **env}, stdin=subprocess.DEVNULL)
        standing = StandIn(worker_id, process)
        self._standing.append(standing)
        eventually((self.folder / f"{worker_id}.begun").exists, "it holds its lock and has begun")
        return standing

    def lock_file(self, standing: StandIn) -> Path:
        """Its lock file, there or not."""
        return runfiles.lock_path(self.run_dir, standing.worker_id)

    def left_by(self, standing: StandIn) -> dict[int, str]:
        """Its processes, as the product finds them."""
        return orphans.orphans(standing.worker_id, self.lock_file(standing))

    def close(self) -> None:
        for standing in self._standing:
            standing.process.kill()
            standing.process.wait(60)
            assert orphans.kill_orphans(standing.worker_id, self.lock_file(standing), {os.getpid()})


def register(standing: StandIn, **changes: object) -> presence.Presence:
    """The row of a worker that this process stands for."""
    own = {
        "id": standing.worker_id,
        "name": f"worker-{standing.pid}",
        "host": identity.host(),
        "boot_id": identity.boot_id(),
        "pid_namespace": identity.pid_namespace(),
        "pid": standing.pid,
        "pid_started": standing.started,
        "version": "1",
        "queues": {"default": 4},
        "types": ["test.echo"],
    }
    who = presence.Presence(**(own | changes))  # type: ignore[arg-type]
    presence.beat(who)
    return who
