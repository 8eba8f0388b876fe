"""What a dead worker left is found, whatever it did to get away, and nothing else is touched."""

import os
import subprocess
import sys

import pytest

from tests.kit.processes import eventually
from workers import identity, orphans, runfiles, tree

pytestmark = pytest.mark.crash


def kill(processes, standing, spare=()):
    return orphans.kill_orphans(standing.worker_id, processes.lock_file(standing), {os.getpid(), *spare}, 20)


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
    runner = (
        "import os, sys, time; time.sleep(0.002); os.fork() and os._exit(0); os.execv(sys.executable, sys.orig_argv)"
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
    trier.communicate("\n", timeout=10)


def test_a_worker_that_a_handler_started_is_no_orphan_of_that_handler_s_worker(processes):
    """Its supervisor and whatever it forked have the marker of the outer worker in the environment of their start."""
    outer = processes.worker("program()")
    inner = processes.worker("if fork(): time.sleep(600)", **{identity.MARKER: str(outer.worker_id)})
    outer.kill()
    found = processes.left_by(outer)
    assert len(found) == 3
    assert inner.pid in found
    spare = orphans.around([inner.pid])
    assert kill(processes, outer, spare)
    assert len(processes.left_by(inner)) == 2
