"""What proves that a worker is dead: its process has ended, what it left is killed, and its lock is free.

Asked by its neighbours and by `turno release`. What can't be looked at from here proves nothing.
"""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from uuid import UUID

from workers import identity, orphans, runfiles
from workers.clock import boottime

PAUSE = 0.1  # seconds between two looks at a lock that is not free yet


class Registered(Protocol):
    """A worker's row, or what was read from it."""

    @property
    def id(self) -> UUID: ...
    @property
    def pid(self) -> int: ...
    @property
    def pid_started(self) -> str: ...


class Doubt(StrEnum):
    """Why a worker is not proven dead."""

    LIVES = "lives"  # its process runs, or may
    NO_FILE = "no file"  # nothing here tells whether its children have ended
    FOREIGN = "foreign"  # it is another user's, whose processes can't be looked into from here
    LEFT = "left"  # something that it started lives, or may


@contextmanager
def of_death(
    worker: Registered, living: Collection[int], *, until: float = 0.0, reaped: bool = False
) -> Iterator[Doubt | None]:
    """None when the worker of this boot and pid namespace is dead, and all that it started: its lock is held here until
    the block ends.

    Kills what it left; never a process of `living`, nor what is above and below those. Tried again until the instant
    `until` (of `boottime`). `reaped`: its supervisor has killed and reaped all that was below it, so that no lock file
    is needed; where there is one, it counts all the same.
    """
    with ExitStack() as held:
        folder = runfiles.run_folder()
        lock_file = runfiles.lock_path(folder, worker.id) if folder else None
        waived = Doubt.NO_FILE if reaped else None
        doubt = _first_doubt(worker, lock_file)
        if doubt in (None, waived):
            doubt = _last_doubt(worker, lock_file, living, until, held)
        yield None if doubt is waived else doubt


def _first_doubt(worker: Registered, lock_file: Path | None) -> Doubt | None:
    """What speaks against it before anything is killed."""
    user = runfiles.owner(lock_file) if lock_file else None
    if not identity.has_ended(worker.pid, worker.pid_started) or _still_holds(worker.pid, lock_file):
        return Doubt.LIVES
    if user is None:
        return Doubt.NO_FILE
    return None if user == os.geteuid() or identity.sees_everybody() else Doubt.FOREIGN


def _still_holds(pid: int, lock_file: Path | None) -> bool:
    """Its pid lives, whatever /proc says of its age."""
    try:
        return orphans.holds(pid, lock_file)
    except PermissionError:  # its pid is another's now
        return False


def _last_doubt(
    worker: Registered, lock_file: Path | None, living: Collection[int], until: float, held: ExitStack
) -> Doubt | None:
    """What speaks against it when all that could be killed is."""
    while True:
        if orphans.kill_orphans(worker.id, lock_file, living, since=worker.pid_started):
            if lock_file is None or runfiles.owner(lock_file) is None:
                return Doubt.NO_FILE
            with ExitStack() as now:
                if now.enter_context(runfiles.is_free(lock_file.parent, worker.id)):
                    held.enter_context(now.pop_all())
                    return None
        if boottime() >= until:
            return Doubt.LEFT
        time.sleep(PAUSE)
