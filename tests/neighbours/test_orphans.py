"""What a dead worker left is found, whatever it did to get away, and nothing else is touched."""

import os
import subprocess
import sys
import time

import pytest

from tests.kit.processes import eventually
from workers import orphans, protocol, runfiles, tree

pytestmark = pytest.mark.crash


def kill(processes, standing, living=()):
    return orphans.kill_orphans(
        standing.worker_id, processes.lock_file(standing), {os.getpid(), *living}, since=standing.started, seconds=20
    )


@pytest.mark.parametrize(
    "body",
    [
        "if fork(): stop()",
        "if fork(): os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
        "if fork():\n    os.setsid()\n    if fork(): time.sleep(600)\n    os._exit(0)\n",
        "program()",
        "if fork(): program(); os._exit(0)",
        "program('import os, signal; os.kill(os.getpid(), signal.SIGSTOP)')",
    ],
    ids=["stopped", "deaf, in its own session", "a daemon", "a program", "a program without its parent", "both"],
)
def test_what_a_dead_worker_left_is_killed(processes, body):
    standing = processes.worker(body)
    eventually(lambda: len(processes.left_by(standing)) == 2, "it and its one process are there")
    standing.kill()
    [left] = eventually(lambda: list(processes.left_by(standing)), "something is left")
    assert kill(processes, standing)
    assert not tree.alive(left)
    with runfiles.is_free(processes.run_dir, standing.worker_id) as free:
        assert free


def test_what_hides_below_a_marked_program_goes_with_it(processes):
    bare = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'], env={})"
    standing = processes.worker(f"program({bare!r})")
    standing.kill()
    [program] = eventually(lambda: list(processes.left_by(standing)), "the program is marked")
    [hidden] = eventually(lambda: tree.children(program), "and has a child without an environment")
    assert kill(processes, standing)
    assert not tree.alive(hidden)


def test_a_program_that_starts_itself_anew_all_the_time_does_not_get_away(processes):
    runner = (  # it ends by itself, should the test be killed
        f"import os, sys, time; time.time() > {time.time() + 120} and os._exit(0); time.sleep(0.002); "
        "os.fork() and os._exit(0); os.execv(sys.executable, sys.orig_argv)"
    )
    standing = processes.worker(f"program({runner!r})")
    standing.kill()
    assert eventually(lambda: processes.left_by(standing), "it runs")
    assert kill(processes, standing)
    assert not processes.left_by(standing)


def test_other_workers_and_their_programs_are_not_touched(processes):
    other = processes.worker("program()\nif fork(): time.sleep(600)")
    standing = processes.worker("program()")
    standing.kill()
    assert kill(processes, standing)
    assert len(processes.left_by(other)) == 3


TRIER = """
import fcntl, sys
file = open(sys.argv[1], "r+")
try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print(flush=True)
    input()
"""


def test_who_only_tries_a_lock_is_not_taken_for_its_holder(processes):
    standing = processes.worker()
    lock_file = processes.lock_file(standing)
    trier = subprocess.Popen(
        [sys.executable, "-c", TRIER, lock_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert trier.stdout.readline() == "\n"
    assert orphans.holds(standing.pid, lock_file)
    assert not orphans.holds(trier.pid, lock_file)
    assert list(processes.left_by(standing)) == [standing.pid]
    standing.kill()
    with runfiles.is_free(processes.run_dir, standing.worker_id) as free:
        assert free
        assert not processes.left_by(standing)  # this process has it locked now
    trier.communicate("\n", timeout=60)


def test_a_worker_that_a_handler_started_is_no_orphan_of_that_handler_s_worker(processes):
    """Its supervisor and whatever it forked have the marker of the outer worker in the environment of their start."""
    outer = processes.worker("program()")
    inner = processes.worker("if fork(): time.sleep(600)", **{protocol.WORKER_VARIABLE: str(outer.worker_id)})
    outer.kill()
    found = processes.left_by(outer)
    assert len(found) == 3
    assert inner.pid in found
    assert kill(processes, outer, [inner.pid])
    assert len(processes.left_by(inner)) == 2


def test_however_many_neighbours_live_there_are_no_more_pictures_and_none_where_nothing_is_left(processes, monkeypatch):
    pictures = []
    look = tree._processes
    monkeypatch.setattr(tree, "_processes", lambda: pictures.append(1) or look())
    standing = processes.worker()
    standing.kill()
    assert kill(processes, standing, range(2**22, 2**22 + 50))
    assert pictures == []
    standing = processes.worker("program()")
    standing.kill()
    assert kill(processes, standing, range(2**22, 2**22 + 50))
    assert len(pictures) < 10


def test_a_family_is_all_above_and_all_below():
    middle = subprocess.Popen(["sh", "-c", "sleep 600; true"])
    [child] = eventually(lambda: tree.children(middle.pid), "it has a child")
    try:
        found = tree.family([middle.pid])
        assert {1, os.getpid(), os.getppid(), middle.pid, child} <= found | {1}
        other = subprocess.Popen(["sleep", "600"])
        assert other.pid not in tree.family([middle.pid])
        other.kill()
        other.wait(60)
        assert tree.family([]) == set()
    finally:
        tree.kill_tree(middle.pid)
        middle.wait(60)


class TestAPidThatSomebodyElseHasByNow:
    """Between the look and the kill the process ended, and its id was given away."""

    @pytest.fixture
    def innocent(self):
        process = subprocess.Popen(["sh", "-c", "sleep 600; true"])
        [child] = eventually(lambda: tree.children(process.pid), "it has a child")
        # Until the child has become a program, the shell that forked it sleeps in a way that nothing interrupts.
        eventually(lambda: tree.stat(process.pid)[0] == tree.stat(child)[0] == "S", "both sleep")
        yield process.pid, child
        tree.kill_tree(process.pid)
        process.wait(60)

    def test_is_not_killed_nor_what_is_below_it(self, innocent, processes, monkeypatch):
        pid, child = innocent
        standing = processes.worker()
        standing.kill()
        answers = iter([orphans._Found({pid: "1"}, set(), hidden=False), orphans._Found({}, set(), hidden=False)])
        monkeypatch.setattr(orphans, "_look", lambda *_: next(answers))
        monkeypatch.setattr(tree, "family", set)  # (they are this process's own, and would be spared as the living's)
        assert kill(processes, standing)
        assert tree.alive(pid)
        assert tree.alive(child)
        monkeypatch.undo()

    def test_is_neither_stopped_nor_killed_as_a_tree(self, innocent, monkeypatch):
        pid, child = innocent
        monkeypatch.setattr(tree, "_start_of", lambda _: "1")
        assert tree.kill_tree(pid)
        assert tree.stat(pid)[0] == "S"
        assert tree.alive(child)
        monkeypatch.undo()
