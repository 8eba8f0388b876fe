"""Processes are recognised by pid and start time, and ended for certain."""

import signal
import subprocess
import sys

from tests.launcher.stand_in import until
from turno.launcher.children import LONGEST_PAUSE, OF_SUPERVISORS, Child, cause
from turno.launcher.paths import ROOT
from turno.launcher.processes import Identity, alive, children, end, identity_of, spawn

STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()"
SAYS = """
import sys
from workers.supervision.events import say
print("this is wrong", file=sys.stderr, flush=True)
say("supervisor.worker_failed", "error", code=1)
"""
PARENT = """
import pathlib, signal, sys
from turno.launcher.processes import spawn
child = spawn(["sleep", "600"], log=pathlib.Path(sys.argv[1]), death_signal=signal.SIGTERM)
print(child.pid, flush=True)
signal.pause()
"""


def test_a_zombie_counts_as_gone():
    process = subprocess.Popen(["true"])
    until(lambda: identity_of(process.pid) is None, "the process ends")
    process.wait()


def test_a_pid_that_was_given_to_somebody_else_is_not_the_process_that_was_written_down():
    with subprocess.Popen(["sleep", "60"]) as process:
        found = identity_of(process.pid)
        assert found is not None
        assert alive(found)
        assert not alive(Identity(found.pid, "another start"))
        assert end(Identity(found.pid, "another start"), [(signal.SIGKILL, 1.0)])
        assert process.poll() is None
        process.kill()


def test_a_process_that_ignores_the_first_signal_gets_the_next():
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = identity_of(process.pid)
        assert found is not None
        assert end(found, [(signal.SIGTERM, 0.1), (signal.SIGKILL, 10.0)])


def test_children_are_listed():
    with subprocess.Popen(["sleep", "60"]) as process:
        import os

        assert process.pid in [child.pid for child in children(os.getpid())]
        process.kill()


def test_a_child_dies_with_a_killed_parent(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = identity_of(int(parent.stdout.readline()))
    assert child is not None
    parent.kill()
    parent.communicate()
    if sys.platform == "linux":
        until(lambda: not alive(child), "the child follows")
    else:
        end(child, [(signal.SIGKILL, 5.0)])


def test_a_child_leads_a_session_of_its_own(tmp_path):
    import os

    process = spawn(["sleep", "60"], log=tmp_path / "log", death_signal=signal.SIGTERM)
    assert os.getsid(process.pid) == process.pid
    process.kill()
    process.wait()


def test_the_pause_before_a_new_start_grows_and_ends_growing(tmp_path):
    child = Child("x", [sys.executable, "-c", "raise SystemExit(7)"], tmp_path / "log", {}, tmp_path, 1.0)
    pauses = []
    for _round in range(9):
        child.start()
        assert child.process is not None
        child.process.wait()
        began = child.started_at
        assert child.ended() == 7
        assert child.ended() is None
        pauses.append(round(child.due_at - began))
        child.due_at = 0.0
    assert pauses == sorted(pauses)
    assert pauses[-1] >= LONGEST_PAUSE - 1


def test_the_last_words_are_the_last_line_that_says_something(tmp_path):
    child = Child("x", [], tmp_path / "log", {}, tmp_path, 1.0)
    assert child.last_words() == ""
    child.log.write_text("first\nsecond  \n\n")
    assert child.last_words() == "second"
    child.log.write_text("\x1b[38;5;160m2026-11-30 [error] no room\x1b[0m\n")  # as RabbitMQ writes it
    assert child.last_words() == "2026-11-30 [error] no room"


def test_the_last_words_are_the_workers_and_not_those_of_its_supervisor(tmp_path):
    from workers.supervision import events

    child = Child("x", [], tmp_path / "log", {}, tmp_path, 1.0)
    with child.log.open("w") as log:
        written = subprocess.run([sys.executable, "-c", SAYS], stderr=log, check=True, cwd=ROOT)
    assert written.returncode == 0
    assert child.last_words() == "this is wrong"
    child.log.write_text(child.log.read_text().splitlines()[-1])
    assert "supervisor.worker_failed" in child.last_words()
    assert f'"logger":"{events.LOGGER}"' == OF_SUPERVISORS


def test_a_cause_is_a_signal_or_an_exit_code():
    assert [cause(-9), cause(-15), cause(2)] == ["SIGKILL", "SIGTERM", "2"]
