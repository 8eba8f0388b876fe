"""A worker of one user, looked at by another: what can't be seen is not dead.

Where the tests run as root the users are real; else this user stands for both, and only what is asked differs.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.conf import overridden
from jobs.states import State
from tests.kit.processes import eventually
from tests.neighbours.stand_ins import register
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import make_job
from workers import identity, orphans, protocol, runfiles, tree
from workers.neighbours import Neighbours
from workers.release import NotProvenDead, release_everything

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed"), pytest.mark.crash]
ROOT = os.geteuid() == 0
NOBODY = 65534 if ROOT else os.geteuid()
WITH_MORE_RIGHTS = ["setpriv", "--reuid", str(NOBODY), "--inh-caps", "+net_raw", "--ambient-caps", "+net_raw", "--"]


@pytest.fixture
def run_dir() -> Iterator[Path]:
    """A run folder that several users share."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    with overridden(worker={"run_dir": str(folder)}):
        yield folder
    shutil.rmtree(folder)


@contextmanager
def program_of(standing, *before: str, user: int | None = NOBODY) -> Iterator[int]:
    """The pid of a program that a handler of the worker left, running as that user."""
    environment = {protocol.WORKER_VARIABLE: str(standing.worker_id), "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        [*before, "sleep", "600"], env=environment, user=user if ROOT else None, start_new_session=True
    )
    eventually(lambda: tree.stat(process.pid)[0] == "S" and _runs_sleep(process.pid), "it sleeps")
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(60)


def _runs_sleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")


@contextmanager
def looking_as_nobody(monkeypatch) -> Iterator[None]:
    """This process has the rights of another user."""
    if not ROOT:
        monkeypatch.setattr(identity, "sees_everybody", lambda: False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0 if ROOT else os.geteuid())


def left_by_nobody(processes):
    """A dead worker of that user, and its running job."""
    standing = processes.worker()
    register(standing)
    standing.kill()
    os.chown(processes.lock_file(standing), NOBODY, -1)
    return standing, make_job(State.PROCESSING, worker=standing.worker_id)


@pytest.mark.parametrize("by", ["release", "neighbour"])
def test_root_finds_and_kills_what_another_user_s_worker_left_before_it_gives_anything_back(processes, by):
    standing, job = left_by_nobody(processes)
    # The program is this process's child: it would be spared as one of the living.
    with program_of(standing) as pid, none_is_spared():
        assert (release_everything(standing.worker_id) if by == "release" else Neighbours().take_back()) == 1
        assert not tree.alive(pid)
    assert rows.state(job.id) == State.ENQUEUED


@contextmanager
def none_is_spared() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "family", set)
        yield


def test_another_user_s_worker_is_not_released_by_who_can_not_see_its_processes(processes, monkeypatch):
    standing, job = left_by_nobody(processes)
    os.chown(processes.lock_file(standing), os.geteuid(), -1)
    with program_of(standing, user=None) as pid, looking_as_nobody(monkeypatch):
        if not ROOT:
            monkeypatch.setattr(runfiles, "owner", lambda _: 1)
        with pytest.raises(NotProvenDead, match="another user's"):
            release_everything(standing.worker_id, reaped=True)
        assert Neighbours().take_back() == 0
        assert tree.alive(pid)
    assert rows.state(job.id) == State.PROCESSING


def test_a_process_of_the_worker_s_user_that_can_not_be_looked_into_may_be_the_worker_s(processes, monkeypatch):
    """Such as one with more rights than who looks."""
    standing, job = left_by_nobody(processes)
    with program_of(standing, *(WITH_MORE_RIGHTS if ROOT else []), user=None) as pid, none_is_spared():
        with looking_as_nobody(monkeypatch):
            if not ROOT:
                monkeypatch.setattr(orphans, "_is_marked", _unseen(pid))
            assert Neighbours().take_back() == 0
            assert not orphans.kill_orphans(standing.worker_id, processes.lock_file(standing), since=standing.started)
            # One that is older than the worker can't be its descendant.
            younger = str(int(identity.start_time(pid)) + 1)
            assert orphans.kill_orphans(standing.worker_id, processes.lock_file(standing), since=younger)
        assert tree.alive(pid)
        assert rows.state(job.id) == State.PROCESSING
        monkeypatch.undo()
    assert Neighbours().take_back() == 1


def _unseen(hidden: int):
    def is_marked(pid: int, marker: bytes) -> bool:
        if pid == hidden:
            raise PermissionError
        return False

    return is_marked


def test_who_sees_everybody_is_told_by_what_it_may_and_not_by_its_name(monkeypatch):
    if ROOT:
        assert identity.sees_everybody()
    with looking_as_nobody(monkeypatch):
        assert not identity.sees_everybody()
