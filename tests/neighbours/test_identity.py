"""When it is certain that a process has ended."""

import os
import subprocess
import sys

import pytest

from tests.kit.processes import eventually
from workers import identity, tree


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


@pytest.fixture
def process():
    started = sleeper()
    yield started
    started.kill()
    started.wait(60)


def test_a_process_that_runs_has_not_ended(process):
    assert not identity.has_ended(process.pid, identity.start_time(process.pid))
    assert not identity.has_ended(os.getpid(), identity.start_time(os.getpid()))


def test_a_process_that_is_gone_has_ended(process):
    started = identity.start_time(process.pid)
    process.kill()
    process.wait(60)
    assert identity.has_ended(process.pid, started)


def test_a_process_that_only_waits_to_be_reaped_has_ended(process):
    started = identity.start_time(process.pid)
    process.kill()
    eventually(lambda: not tree.alive(process.pid), "it is a zombie")
    assert identity.start_time(process.pid) == started
    assert identity.has_ended(process.pid, started)


def test_a_pid_that_another_process_has_now_is_not_the_one_that_registered(process):
    assert identity.has_ended(process.pid, str(int(identity.start_time(process.pid)) - 1))


def test_of_a_start_time_that_was_never_known_nothing_follows(process):
    started = identity.start_time(process.pid)
    process.kill()
    process.wait(60)
    assert not identity.has_ended(process.pid, "")
    assert identity.has_ended(process.pid, started)


def test_a_process_that_lives_and_is_not_shown_has_not_ended(process, monkeypatch):
    monkeypatch.setattr(identity, "start_time", lambda pid: "")  # what hidepid does to the processes of others
    assert not identity.has_ended(process.pid, "12345")


def test_a_proc_that_shows_another_namespace_says_nothing(process, monkeypatch):
    started = identity.start_time(process.pid)
    process.kill()
    process.wait(60)
    monkeypatch.setattr(identity, "_link", lambda path: "1" if path == "/proc/self" else "")
    assert not identity.has_ended(process.pid, started)
