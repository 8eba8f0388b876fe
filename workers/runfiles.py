"""The run folder, and in it one file a live worker: locked as long as any process of its tree lives.

A worker locks its file before it forks. Whatever it forks shares the open file, and with it the lock (flock belongs to
the open file, not to the process); what handlers start by exec does not. So a lock that can be had proves that worker,
forkserver and children are gone, however they ended. No folder, no file, another folder: nothing is proven.
"""

import fcntl
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from django.conf import settings

from jobs.conf import conf

log = logging.getLogger(__name__)
SUFFIX = ".lock"
UNFINISHED = ".new"
GATE = "neighbours.gate"
FORGOTTEN = 3600.0  # seconds after which a file may be nobody's: a worker touches its own every few minutes


def run_folder() -> Path | None:
    """The folder of the lock files, made when it is missing; None when there is none that can be trusted.

    The setting `worker.run_dir`; else `.turno/run` in the project's folder; else a folder of this user among the
    temporary files. Workers that are to know of each other's death must see the same one.
    """
    chosen = conf().worker.run_dir
    if chosen:
        return _usable(Path(chosen).expanduser(), ours=False)
    project = Path(getattr(settings, "BASE_DIR", None) or Path.cwd())
    own = Path(tempfile.gettempdir()) / f"turno-{os.geteuid()}"
    return _usable(project / ".turno" / "run") or _usable(own)


def _usable(folder: Path, *, ours: bool = True) -> Path | None:
    """The folder, if files can be made there; `ours`: if it also belongs to this user, and no other may write."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat() if not ours else folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(about.st_mode) or not os.access(folder, os.W_OK | os.X_OK):
        return None
    if ours and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
        return None
    return folder


class LockFile:
    """A worker's own file and its lock. `fd` is None where there is none: the worker works all the same."""

    def __init__(self, path: Path | None, fd: int | None) -> None:
        self.path = path
        self.fd = fd
        self._gone = False

    def release(self) -> None:
        """The worker ended in order, and everything that it forked is gone: the file is not needed any more."""
        if self.fd is None or self.path is None:
            return
        if self._is_there():
            self.path.unlink(missing_ok=True)
        os.close(self.fd)
        self.fd = None

    def keep(self) -> bool:
        """Now and then: keeps those who tidy temporary files away. False when the file is gone all the same.

        It is not made anew: what was forked already would not share its lock.
        """
        if self.fd is None:
            return False
        if not self._is_there():
            if not self._gone:
                log.warning("lock.gone", extra={"file": str(self.path)})
            self._gone = True
            return False
        with suppress(OSError):
            os.utime(self.fd)
        return True

    def _is_there(self) -> bool:
        if self.fd is None or self.path is None:
            return False
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(self.fd))
        except OSError:
            return False


def hold(worker_id: UUID) -> LockFile:
    """Make and lock the file of a worker of this process; before it registers, and before anything is forked.

    Where that fails (no folder, a full disk, a file system without locks) it says so, and nothing is held.
    """
    folder = run_folder()
    if folder is None:
        log.warning("lock.none", extra={"reason": "no folder can be written"})
        return LockFile(None, None)
    # Locked under another name first: under its own it is never seen without its lock.
    unfinished, path = folder / f"{worker_id}{UNFINISHED}", lock_path(folder, worker_id)
    try:
        fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unfinished.rename(path)
        except OSError:
            os.close(fd)
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        log.warning("lock.none", extra={"folder": str(folder), "reason": error.strerror})
        return LockFile(None, None)
    return LockFile(path, fd)


def lock_path(folder: Path, worker_id: UUID) -> Path:
    """The file of the worker in the folder."""
    return folder / f"{worker_id}{SUFFIX}"


def owner(lock_file: Path) -> int | None:
    """The id of the user whose worker made this file; None when there is no such file."""
    with suppress(OSError):
        about = lock_file.lstat()
        return about.st_uid if stat.S_ISREG(about.st_mode) else None
    return None


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """True for one process at a time, until the block ends. It saves work and guards nothing: any number may look for
    the dead. True as well where the gate can't be had at all (such as: another user made it)."""
    with _locked(folder / GATE, fcntl.LOCK_EX, os.O_CREAT) as got:
        yield got is not False


@contextmanager
def is_free(folder: Path, worker_id: UUID) -> Iterator[bool | None]:
    """Whether nothing of the worker's tree lives: True (its lock is held here until the block ends), False (something
    does), None (no such file, or it can't be read: nothing is proven)."""
    # A shared lock is enough against the worker's own, and does not look like that (see workers.orphans).
    with _locked(lock_path(folder, worker_id), fcntl.LOCK_SH, 0) as got:
        yield got


@contextmanager
def _locked(path: Path, kind: int, flags: int) -> Iterator[bool | None]:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    except OSError:
        yield None
        return
    try:
        yield _try_lock(fd, kind)
    finally:
        with suppress(OSError):
            # A program that is being started in another thread may have the file for a moment: closing is not enough.
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _try_lock(fd: int, kind: int) -> bool | None:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that has no locks
        return None
    return True


def sweep(folder: Path, older_than: float) -> int:
    """Remove the files of workers that are gone and gave no sign of life for `older_than` seconds; returns how many.

    Whose rows they belong to is not asked: workers of another database may share the folder. Files that never became a
    worker's are removed as well.
    """
    swept, before = 0, time.time() - max(older_than, FORGOTTEN)
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return 0
    for entry in entries:
        name = Path(entry.name)
        with suppress(ValueError, OSError):
            if name.suffix not in (SUFFIX, UNFINISHED) or entry.stat(follow_symlinks=False).st_mtime >= before:
                continue
            worker_id = UUID(name.stem)
            if name.suffix == UNFINISHED:
                Path(entry.path).unlink(missing_ok=True)
                continue
            with is_free(folder, worker_id) as free:
                if free:
                    Path(entry.path).unlink()
                    swept += 1
    return swept
