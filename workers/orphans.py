"""What a dead worker left running, found by what it can't shake off, and killed.

It has the worker's id in the environment of its program (`WORKER_VARIABLE`): the worker was started with it, and what
it forked or started has it from there. What it forked (forkserver, children, whatever they fork) also shares its lock
file, still open and still locked: the second way to find it. Only processes of this pid namespace are looked at:
this user's, and those of all users where this process may look into them. One that may be the worker's and can't be
looked into is never taken for nothing.
"""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from workers import identity, marks, runfiles, tree
from workers.protocol import WORKER_VARIABLE

PROC = Path("/proc")
PAUSE = 0.02  # seconds between two looks


class _Found(NamedTuple):
    pids: dict[int, str]  # and start times
    spare: set[int]  # what must stay, as it was when these were found
    hidden: bool  # something may be the worker's, and can't be looked into


def kill_orphans(
    worker_id: UUID, lock_file: Path | None, living: Collection[int] = (), *, since: str = "", seconds: float = 5.0
) -> bool:
    """SIGKILL, with all that is below them, the processes that a dead worker left.

    The caller knows that the worker's own process has ended; `since` is its start time. `living`: processes that are
    never touched, nor is what is above and below them: a worker that a handler started is not that handler's orphan.
    False when some are left at last, and when a process of that user could not be looked into. Raises OSError when
    this process can't look at all (such as: it has no room for another open file).
    """
    limit = time.monotonic() + seconds
    while (found := _look(worker_id, lock_file, living, since)).pids:
        for pid, started in found.pids.items():
            tree.kill_below(pid, max(0.1, limit - time.monotonic()), found.spare, started)
            with suppress(OSError):
                tree.send(pid, signal.SIGKILL, started)
        if time.monotonic() >= limit:
            return False
        time.sleep(PAUSE)
    return not found.hidden


def orphans(worker_id: UUID, lock_file: Path | None, living: Collection[int] = ()) -> dict[int, str]:
    """The processes with the worker's marker or its lock, as pid and start time; without zombies and `living`."""
    return _look(worker_id, lock_file, living, "").pids


def holds(pid: int, lock_file: Path | None) -> bool:
    """Whether the process has this lock file open with the lock that a worker's tree shares.

    Raises PermissionError when it can't be looked into.
    """
    if lock_file is None:
        return False
    folder = PROC / str(pid)
    with suppress(FileNotFoundError, ProcessLookupError):
        for number in os.listdir(folder / "fd"):  # noqa: PTH208
            with suppress(FileNotFoundError, ProcessLookupError):
                if Path(os.readlink(folder / "fd" / number)).name.startswith(lock_file.name):  # noqa: PTH115
                    # Who only tries the lock has the file open as well, with a shared lock or none.
                    about = (folder / "fdinfo" / number).read_text()
                    if any("FLOCK" in line and "WRITE" in line for line in about.splitlines()):
                        return True
    return False


def _look(worker_id: UUID, lock_file: Path | None, living: Collection[int], since: str) -> _Found:
    marker = f"{WORKER_VARIABLE}={worker_id}".encode()
    user = runfiles.owner(lock_file) if lock_file else None
    user = os.geteuid() if user is None else user
    looked_at, hidden = set[int](), set[int]()
    # Who forks and leaves again and again is in no single list: look until a list has nobody new.
    while fresh := [(pid, uid) for pid, uid in _processes(user) if pid not in looked_at]:
        found: dict[int, str] = {}
        for pid, uid in fresh:
            looked_at.add(pid)
            started = identity.start_time(pid)
            try:
                if (marker in marks.environment(pid) or holds(pid, lock_file)) and started and tree.alive(pid):
                    found[pid] = started
            except PermissionError:
                if uid == user and _may_be_of(pid, started, since):
                    hidden.add(pid)
        if found or hidden:  # whoever was found above is in this picture, or gone
            spare = tree.family(living)
            found = {pid: started for pid, started in found.items() if pid not in spare}
            hidden -= spare
        if found:
            return _Found(found, spare, bool(hidden))
    return _Found({}, set(), bool(hidden))


def _processes(user: int) -> Iterator[tuple[int, int]]:
    """Pid and user id: this user's processes and that user's, or all where they can be looked into."""
    users = None if identity.sees_everybody() else {os.geteuid(), user}
    for name in os.listdir(PROC):  # noqa: PTH208
        if name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                uid = (PROC / name).stat().st_uid
                if users is None or uid in users:
                    yield int(name), uid


def _may_be_of(pid: int, started: str, since: str) -> bool:
    """Whether a process that can't be looked into may be a descendant of one that started at `since`."""
    if not started:
        return True
    return tree.alive(pid) and not identity.of_the_kernel(pid) and not (since and int(started) < int(since))
