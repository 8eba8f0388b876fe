"""What handlers leave behind, Turno's and the peers' alike: how often they ran, and how late.

Standard library only: the peers run in an environment of their own. A process writes to files of its own in the folder
that BENCHMARK_TALLY names, which costs a handler about a microsecond. Instants are CLOCK_MONOTONIC, which all processes
of a machine share.
"""

import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BENCHMARK_TALLY"
_COUNT = struct.Struct("=q")
_LATE = struct.Struct("=d")


class _Marks:
    """The three files of this process."""

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._count = 0
        with (folder / f"ran-{os.getpid()}").open("w+b") as file:
            file.truncate(_COUNT.size)
            self._map = mmap.mmap(file.fileno(), _COUNT.size)
        kind = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._late = os.open(folder / f"late-{os.getpid()}", kind)
        self._notes = os.open(folder / f"note-{os.getpid()}", kind)

    def ran(self) -> None:
        with self._lock:
            self._count += 1
            _COUNT.pack_into(self._map, 0, self._count)

    def late(self, milliseconds: float) -> None:
        os.write(self._late, _LATE.pack(milliseconds))

    def note(self, text: str) -> None:
        os.write(self._notes, f"{text}\n".encode())


_marks: dict[int, _Marks] = {}
_making = threading.Lock()


def _mine() -> _Marks:
    """Made at the first job of a process: one that was forked has its own."""
    found = _marks.get(pid := os.getpid())
    if found is None:
        with _making:
            found = _marks.setdefault(pid, _Marks(Path(os.environ[VARIABLE]))) if pid not in _marks else _marks[pid]
    return found


def ran() -> None:
    """A handler ran once."""
    _mine().ran()


def late(sent: float) -> None:
    """A handler began that was asked for at `sent`, in seconds of CLOCK_MONOTONIC."""
    now = time.monotonic()
    marks = _mine()
    marks.late(1000 * (now - sent))
    marks.ran()


def ended(job: str) -> None:
    """The handler of this job ends now."""
    marks = _mine()
    marks.note(f"{job} {time.monotonic()}")
    marks.ran()


@dataclass(frozen=True)
class Tally:
    """The readers' side of a folder."""

    folder: Path

    def count(self) -> int:
        """How often handlers have run since the folder was made."""
        total = 0
        for path in self.folder.glob("ran-*"):
            content = path.read_bytes()
            total += _COUNT.unpack(content)[0] if len(content) == _COUNT.size else 0
        return total

    def lateness(self) -> list[float]:
        """What was noted as late, in milliseconds, since the last call."""
        found: list[float] = []
        for path in sorted(self.folder.glob("late-*")):
            found += [item[0] for item in _LATE.iter_unpack(path.read_bytes())]
            os.truncate(path, 0)
        return found

    def notes(self) -> dict[str, float]:
        """The instants at which handlers noted their end, by job, since the last call."""
        found: dict[str, float] = {}
        for path in sorted(self.folder.glob("note-*")):
            for line in path.read_text().splitlines():
                job, instant = line.split()
                found[job] = float(instant)
            os.truncate(path, 0)
        return found
