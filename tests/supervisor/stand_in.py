"""Supervisors over workers of a few lines, each a script of the test's own."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.processes import PROJECT, eventually
from workers import tree

# What each worker begins with. `mark(word)` writes a line that the test reads; `say(b"...")` writes into the pipe.
WORKER = """
import os, signal, sys, time
from workers import protocol, tree
from workers.clock import boottime
FD = int(os.environ["TURNO_SUPERVISOR_FD"])
ID = "01234567-89ab-cdef-0123-%012x" % os.getpid()
def say(words): os.write(FD, words)
def mark(*words):
    with open("marks", "a") as marks: print(*words, file=marks)
def lives(): return len([line for line in open("marks") if line.startswith("life")])
def forever():  # in naps: a signal that comes just before pause() begins would leave its handler waiting for another
    while True: time.sleep(0.1)
def nap(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: time.sleep(0.02)
def introduce(kill=0.0): say(protocol.worker(ID) + protocol.grace(0.3, kill))
def stopped(*_):
    mark("stopped")
    sys.exit(0)
signal.signal(protocol.STOP, stopped)
mark("life", os.getpid())
"""
RELEASE = """
import os, sys, time
from workers import tree
with open("marks", "a") as marks:
    left = [pid for pid in tree.descendants(os.getppid()) if pid != os.getpid()]
    print("release", sys.argv[1], "TURNO_SUPERVISOR_FD" in os.environ, left, file=marks)
sys.exit(int(os.environ.get("RELEASE_CODE", "0")))
"""
RUN = """
import os, sys
from workers.supervision import below, charge, supervisor, init
supervisor.MARGIN = 60.0  # a worker that ends by itself is never killed, however slow the machine is
below.LOOK = supervisor.LOOK = 0.5
supervisor.Pause.__init__.__globals__.update(FIRST=0.05, LONGEST=0.5)
worker, release = [sys.executable, "worker.py"], [sys.executable, "release.py"]
"""
# `before`, where a worker that does not end is to be killed soon.
IMPATIENT = "supervisor.MARGIN = 0.5"
ONE = "sys.exit(supervisor.Supervisor(worker, release, os.environ).run())"
SEVERAL = """
def one(number): return lambda ready: supervisor.Supervisor([*worker, str(number)], release, os.environ, ready).run()
sys.exit(init.Init([one(number) for number in range(int(os.environ["COUNT"]))]).run())
"""


@dataclass
class StandIn:
    """A supervisor in a folder; the folder holds the worker's script and what it marks."""

    folder: Path
    process: "subprocess.Popen[bytes] | None" = None
    env: dict[str, str] = field(default_factory=dict)

    def start(self, worker: str, run: str = ONE, before: str = "", **popen: Any) -> "subprocess.Popen[bytes]":
        """Start it. `before` is Python that runs in the process before it becomes the supervisor."""
        (self.folder / "worker.py").write_text(WORKER + worker)
        (self.folder / "release.py").write_text(RELEASE)
        env = {**os.environ, "PYTHONPATH": str(PROJECT), **self.env}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN + before + "\n" + run],
                cwd=self.folder,
                env=env,
                **{"stderr": log, "stdout": log, **popen},
            )
        return self.process

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float = 120.0) -> int:
        """The exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def marks(self, word: str) -> list[list[str]]:
        """The lines that begin with the word, split, without it."""
        path = self.folder / "marks"
        lines = path.read_text().splitlines() if path.exists() else []
        return [parts[1:] for line in lines if (parts := line.split()) and parts[0] == word]

    def marked(self, word: str, count: int = 1) -> list[list[str]]:
        """Wait for so many of them."""

        def found() -> list[list[str]]:
            assert self.process is not None
            ended = self.process.poll() is not None
            marks = self.marks(word)
            assert len(marks) >= count or not ended, f"it ended:\n{self.log}"
            return marks if len(marks) >= count else []

        return eventually(found, f"{count} times {word}")

    @property
    def worker(self) -> int:
        """The pid of the newest worker."""
        return int(self.marked("life")[-1][0])

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def last_words(self) -> str:
        """The last line of the log that is no event of the supervisor's."""
        return [line for line in self.log.splitlines() if '"logger":"workers.supervision"' not in line][-1]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The supervisor's events of this name."""
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith('{"at"')]
        return [event for event in lines if event["event"] == f"supervisor.{name}"]

    def said(self, name: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until the supervisor has said this so many times."""
        return eventually(
            lambda: (found := self.events(name)) and len(found) >= count and found, f"{count} times {name}", 30
        )

    def close(self) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            below = tree.descendants(self.pid)
            self.process.send_signal(signal.SIGCONT)
            tree.kill_tree(self.pid, 20)
            self.process.wait(60)
            eventually(lambda: not any(tree.alive(pid) for pid in below), "nothing of it is left")
