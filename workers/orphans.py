"""What a dead worker left running, found by what it can't shake off, and killed.

What the worker forked (forkserver, children, whatever they fork) shares its lock file, still open and still locked.
What handlers started by exec has the worker's id in its environment (`identity.MARKER`). Only this user's processes of
this pid namespace are looked at; where /proc shows less, less is found.
"""

import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from workers import identity, tree

PROC = Path("/proc")
PAUSE = 0.02  # seconds between two looks
LOOKS = 3  # at an environment that is empty


def kill_orphans(worker_id: UUID, lock_file: Path | None, spare: Collection[int], seconds: float = 5.0) -> bool:
    """SIGKILL, with all that is below them, the processes that a dead worker left; False when some are left at last.

    The caller knows that the worker's own process has ended. `spare`: processes that are never touched.
    """
    limit = time.monotonic() + seconds
    while left := orphans(worker_id, lock_file, spare):
        for pid, started in left.items():
            tree.kill_below(pid, max(0.1, limit - time.monotonic()), spare)
            _kill(pid, started)
        if time.monotonic() >= limit:
            return False
        time.sleep(PAUSE)
    return True


def orphans(worker_id: UUID, lock_file: Path | None, spare: Collection[int] = ()) -> dict[int, str]:
    """The processes with the worker's marker or its lock, as pid and start time; zombies and `spare` left out."""
    marker = f"{identity.MARKER}={worker_id}".encode()
    found: dict[int, str] = {}
    looked_at = set(spare)
    # Who forks and leaves again and again is in no single list: look until a list has nobody new.
    while not found and (fresh := [pid for pid in _own_processes() if pid not in looked_at]):
        for pid in fresh:
            looked_at.add(pid)
            started = identity.start_time(pid)
            if started and (_is_marked(pid, marker) or _holds(pid, lock_file)) and tree.alive(pid):
                found[pid] = started
    return found


def around(pids: Iterable[int]) -> set[int]:
    """These processes, all above and all below them: a worker that a handler started is not that handler's orphan."""
    found: set[int] = set()
    for pid in pids:
        found.update((pid, *tree.descendants(pid), *_above(pid)))
    return found


def holds(pid: int, lock_file: Path) -> bool:
    """Whether the process has this lock file open with the lock that a worker's tree shares."""
    return _holds(pid, lock_file)


def _own_processes() -> Iterator[int]:
    user = os.geteuid()
    with suppress(OSError):
        for name in os.listdir(PROC):  # noqa: PTH208
            if name.isdigit():
                with suppress(OSError):
                    if (PROC / name).stat().st_uid == user:
                        yield int(name)


def _is_marked(pid: int, marker: bytes) -> bool:
    with suppress(OSError):
        for _ in range(LOOKS):
            environment = (PROC / str(pid) / "environ").read_bytes()
            if environment or not (PROC / str(pid) / "exe").exists():  # (threads of the kernel have no program)
                return marker in environment.split(b"\0")
            time.sleep(PAUSE / 10)  # it is just becoming another program
    return False


def _holds(pid: int, lock_file: Path | None) -> bool:
    if lock_file is None:
        return False
    folder = PROC / str(pid)
    with suppress(OSError):
        for number in os.listdir(folder / "fd"):  # noqa: PTH208
            with suppress(OSError):
                if Path(os.readlink(folder / "fd" / number)).name.startswith(lock_file.name):  # noqa: PTH115
                    # Who only tries the lock has the file open as well, with a shared lock or none.
                    about = (folder / "fdinfo" / number).read_text()
                    if any("FLOCK" in line and "WRITE" in line for line in about.splitlines()):
                        return True
    return False


def _above(pid: int) -> Iterator[int]:
    while (pid := identity.parent(pid)) > 0:
        yield pid


def _kill(pid: int, started: str) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if identity.start_time(pid) == started:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
