"""What a killed start left is ended as that start would have ended it: by the time in its note, and without hurry."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.stand_in import until
from tests.launcher.test_keeper import PATIENT
from tests.launcher.test_processes import STUBBORN
from turno.launcher.cleanup import end_leftovers
from turno.launcher.paths import Project
from turno.launcher.processes import identity_of
from turno.launcher.state import State, state_path

OLD_LIMIT = 10.0  # seconds that everything got, whatever it needed


class Left:
    """Processes that a killed start left, each the leader of a group, as the launcher makes them."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        self.project.prepare()
        self.state = State()
        self.running: list[subprocess.Popen[str]] = []

    def start(self, name: str, code: str, seconds: float) -> "subprocess.Popen[str]":
        """Returns when it has said its first line."""
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.running.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        identity = identity_of(process.pid)
        assert identity is not None
        self.state.processes[name], self.state.seconds[name] = identity, seconds
        self.state.write(state_path(self.project))
        return process

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.communicate()


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Left]:
    found = Left(tmp_path)
    yield found
    found.close()


def test_what_does_not_end_is_killed_when_the_time_of_its_note_is_over(left: Left):
    process = left.start("worker-1", STUBBORN, 0.3)
    began = time.monotonic()
    end_leftovers(left.project)
    assert process.wait() == -signal.SIGKILL
    assert 0.3 <= time.monotonic() - began < OLD_LIMIT


@pytest.mark.skipif(sys.platform != "linux", reason="only there does a launcher's death tell its processes to stop")
def test_a_worker_that_was_told_by_its_launchers_death_is_not_hurried(left: Left):
    process = left.start("worker-1", PATIENT, 60.0)
    os.kill(process.pid, signal.SIGTERM)  # as its launcher's death does
    ending = threading.Thread(target=end_leftovers, args=[left.project])
    ending.start()
    seen = time.monotonic() + 1.0
    until(lambda: time.monotonic() > seen or process.poll() is not None, "it is waited for")
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 0
    ending.join(60)
    assert not state_path(left.project).exists()
