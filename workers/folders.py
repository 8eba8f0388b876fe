"""Folders of executions whose worker was killed before it could remove them.

Each machine has its own, so each worker looks at those of its machine; the database says which jobs are over. The row
of a job is gone, or its execution has ended, before its folder goes: whoever dies between the two leaves a folder that
the next look finds. What stores files by job elsewhere can be swept the same way.
"""

import logging
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import batched, islice
from pathlib import Path
from uuid import UUID

from jobs.queries.known import states
from jobs.states import State
from workers.connections import ENGINE

log = logging.getLogger(__name__)
# As `workers.context` names them: the job, and letters by chance.
NAME = re.compile(r"turno-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-[0-9a-z_]{8,12}", re.ASCII)
QUIET = 3600.0  # seconds without a change before the folder of a job that does not run goes
# The same for a job that there is not: it was deleted, or it is another database's, whose worker runs here too.
STRANGE = 7 * 86_400.0
ENTRIES = 1000  # of a folder whose age is looked at
AT_ONCE = 500  # jobs that are asked for by one statement


def sweep_folders(folder: Path | None = None, *, using: str = ENGINE) -> int:
    """Remove what executions have left among this machine's temporary files (or in `folder`); returns how many.

    Only folders of this user's that are named as ours are; no link is followed. Raises database errors.
    """
    swept = 0
    for some in batched(_quiet(Path(tempfile.gettempdir()) if folder is None else folder), AT_ONCE):
        known = states((job for job, _path, _age in some), using=using)
        for job, path, age in some:
            state = known.get(job)
            if state is State.PROCESSING or (state is None and age < STRANGE):
                continue
            shutil.rmtree(path, ignore_errors=True)
            swept += not path.exists()
    if swept:
        log.info("folders.swept", extra={"count": swept})
    return swept


def _quiet(folder: Path) -> Iterator[tuple[UUID, Path, float]]:
    """The folders in which nothing has changed for QUIET: job, path, and seconds since the last change."""
    uid, now = os.geteuid(), time.time()
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        match = NAME.fullmatch(entry.name)
        with suppress(OSError):
            if match is None or not (about := entry.stat(follow_symlinks=False)) or about.st_uid != uid:
                continue
            if stat.S_ISDIR(about.st_mode) and (age := now - _changed(entry.path, about.st_mtime)) >= QUIET:
                yield UUID(match[1]), Path(entry.path), age


def _changed(path: str, itself: float) -> float:
    """When something in the folder changed last, itself included; what is deeper counts by the folder it is in."""
    with os.scandir(path) as entries:
        return max([itself, *(entry.stat(follow_symlinks=False).st_mtime for entry in islice(entries, ENTRIES))])
