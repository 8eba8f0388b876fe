"""The run folder and the lock of a worker's tree."""

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from jobs.conf import overridden
from jobs.ids import new_id
from tests.kit.processes import eventually
from workers import runfiles


def free(run_dir, worker_id):
    with runfiles.is_free(run_dir, worker_id) as answer:
        return answer


class TestTheFolder:
    def test_is_the_one_that_the_configuration_names_made_when_it_is_missing(self, tmp_path):
        with overridden(worker={"run_dir": str(tmp_path / "a" / "b")}):
            assert runfiles.run_folder() == tmp_path / "a" / "b"
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700

    def test_that_is_named_and_can_not_be_used_is_replaced_by_no_other(self, tmp_path):
        (tmp_path / "file").write_text("")
        for name in ("file", "file/below"):
            with overridden(worker={"run_dir": str(tmp_path / name)}):
                assert runfiles.run_folder() is None

    def test_is_in_the_project_when_none_is_named(self, tmp_path, settings):
        settings.BASE_DIR = tmp_path
        assert runfiles.run_folder() == tmp_path / ".turno" / "run"

    def test_is_this_user_s_among_the_temporary_files_when_the_project_can_not_be_written(
        self, tmp_path, settings, monkeypatch
    ):
        (tmp_path / ".turno").write_text("in the way")
        settings.BASE_DIR = tmp_path
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        folder = runfiles.run_folder()
        assert folder == tmp_path / f"turno-{os.geteuid()}"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    @pytest.mark.parametrize("trap", ["link", "open to all", "file"])
    def test_that_somebody_else_laid_out_is_refused(self, tmp_path, settings, monkeypatch, trap):
        (tmp_path / ".turno").write_text("in the way")
        settings.BASE_DIR = tmp_path
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        own = tmp_path / f"turno-{os.geteuid()}"
        if trap == "link":
            (tmp_path / "elsewhere").mkdir()
            own.symlink_to(tmp_path / "elsewhere")
        elif trap == "file":
            own.write_text("")
        else:
            own.mkdir()
            own.chmod(0o777)
        assert runfiles.run_folder() is None

    def test_of_another_user_is_refused(self, tmp_path, settings, monkeypatch):
        settings.BASE_DIR = tmp_path
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert runfiles.run_folder() == tmp_path / ".turno" / "run"
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert runfiles.run_folder() is None


class TestTheLock:
    def test_is_held_until_it_is_released_and_leaves_nothing_behind(self, run_dir):
        worker_id = new_id()
        lock = runfiles.hold(worker_id)
        assert free(run_dir, worker_id) is False
        assert stat.S_IMODE(lock.path.stat().st_mode) == 0o600
        lock.release()
        lock.release()
        assert free(run_dir, worker_id) is None
        assert list(run_dir.iterdir()) == []

    def test_of_a_worker_without_a_file_proves_nothing(self, run_dir, tmp_path):
        lock = runfiles.hold(new_id())
        assert free(run_dir, new_id()) is None
        assert free(tmp_path / "elsewhere", new_id()) is None
        lock.release()

    def test_ends_with_the_process(self, processes):
        standing = processes.worker()
        assert free(processes.run_dir, standing.worker_id) is False
        standing.kill(reap=False)
        assert free(processes.run_dir, standing.worker_id) is True

    def test_is_shared_by_what_the_worker_forks_and_not_by_the_programs_that_it_starts(self, processes):
        forked = processes.worker("if fork(): stop()")
        started = processes.worker("program(close_fds=False)")
        for standing in (forked, started):
            standing.kill()
        assert free(processes.run_dir, forked.worker_id) is False
        assert free(processes.run_dir, started.worker_id) is True
        assert len(processes.left_by(started)) == 1
        [child] = processes.left_by(forked)
        os.kill(child, signal.SIGKILL)
        eventually(lambda: free(processes.run_dir, forked.worker_id), "the last of the tree is gone")

    def test_that_is_found_free_stays_so_for_one_neighbour_at_a_time(self, run_dir):
        with runfiles.alone(run_dir) as first, runfiles.alone(run_dir) as second:
            assert (first, second) == (True, False)
        with runfiles.alone(run_dir) as third:
            assert third

    def test_a_gate_that_can_not_be_opened_bars_nobody(self, run_dir):
        (run_dir / runfiles.GATE).mkdir()  # stands for a file of another user
        with runfiles.alone(run_dir) as mine:
            assert mine

    def test_that_can_not_be_had_costs_the_worker_nothing_and_is_said(self, run_dir, caplog):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))  # no file can be opened
        try:
            lock = runfiles.hold(new_id())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert (lock.fd, lock.keep()) == (None, False)
        lock.release()
        assert [record.message for record in caplog.records] == ["lock.none"]
        assert list(run_dir.iterdir()) == []

    def test_without_any_folder_costs_the_worker_nothing_and_is_said(self, tmp_path, caplog):
        (tmp_path / "file").write_text("")
        with overridden(worker={"run_dir": str(tmp_path / "file")}):
            assert runfiles.hold(new_id()).fd is None
        assert [record.message for record in caplog.records] == ["lock.none"]

    def test_is_kept_from_those_who_tidy_old_files_away(self, run_dir):
        lock = runfiles.hold(new_id())
        os.utime(lock.path, (1, 1))
        assert lock.keep()
        assert lock.path.stat().st_mtime > time.time() - 60
        lock.release()

    @pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted and made by somebody else"])
    def test_whose_file_was_deleted_proves_nothing_any_more_and_that_is_said_once(self, run_dir, caplog, again):
        worker_id = new_id()
        lock = runfiles.hold(worker_id)
        lock.path.unlink()
        if again:
            lock.path.write_text("")
        assert not lock.keep()
        assert not lock.keep()
        assert [record.message for record in caplog.records] == ["lock.gone"]
        if not again:
            assert free(run_dir, worker_id) is None
        lock.release()
        assert lock.path.exists() is again  # it is not ours

    def test_is_never_seen_free_while_it_is_made(self, run_dir):
        looker = subprocess.Popen([sys.executable, "-c", LOOKER, str(run_dir)], stdout=subprocess.PIPE, text=True)
        assert looker.stdout.readline() == "looking\n"
        locks = [runfiles.hold(new_id()) for _ in range(300)]
        (run_dir / "stop").write_text("")
        seen, _ = looker.communicate(timeout=60)
        for lock in locks:
            lock.release()
        assert seen.split()[0] == "0"


LOOKER = """
import fcntl, os, sys
print("looking", flush=True)
free = looks = 0
while not os.path.exists(sys.argv[1] + "/stop"):
    for name in os.listdir(sys.argv[1]):
        if name.endswith(".lock"):
            looks += 1
            fd = os.open(f"{sys.argv[1]}/{name}", os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                free += 1
            except BlockingIOError:
                pass
            os.close(fd)
print(free, looks)
"""

pytestmark = pytest.mark.crash


def test_files_are_removed_when_they_are_old_and_nobody_holds_them_whoever_knows_their_workers(run_dir, processes):
    """A worker of another database that shares the folder may need a young one as its proof."""
    living, dead, young = processes.worker(), processes.worker(), processes.worker()
    dead.kill()
    young.kill()
    unfinished, begun = run_dir / f"{new_id()}.new", run_dir / f"{new_id()}.new"
    others = [run_dir / "readme.txt", run_dir / "no-id.lock"]
    for file in (unfinished, begun, *others):
        file.write_text("")
    for file in (unfinished, *others, processes.lock_file(living), processes.lock_file(dead)):
        os.utime(file, (time.time() - 7200, time.time() - 7200))
    assert runfiles.sweep(run_dir, 7300) == 0
    assert runfiles.sweep(run_dir, 0.0) == 1  # what was touched within the hour stays in any case
    kept = {begun, *others, processes.lock_file(living), processes.lock_file(young)}
    assert set(run_dir.iterdir()) == kept
    assert runfiles.sweep(run_dir / "missing", 0.0) == 0


def test_the_owner_of_a_file_is_known_and_a_link_has_none(run_dir, tmp_path):
    lock = runfiles.hold(new_id())
    assert runfiles.owner(lock.path) == os.geteuid()
    (tmp_path / "link").symlink_to(lock.path)
    assert runfiles.owner(tmp_path / "link") is None
    assert runfiles.owner(tmp_path / "nothing") is None
    lock.release()
