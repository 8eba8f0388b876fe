"""The worker's JobContext: progress and log lines are kept here and written in batches, at most once a second a job."""

import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jobs.context import JobContext, LogLevel
from jobs.outcomes import LogLine
from jobs.transitions import Note
from workers.leases import Held


class WorkerContext(JobContext):
    """One execution's context. `dirty` is told once when there is something new to write."""

    def __init__(self, held: Held, dirty: Callable[["WorkerContext"], None]) -> None:
        claim = held.claim
        super().__init__(
            job_id=claim.id,
            type=claim.type,
            attempt=claim.attempt,
            execution=claim.execution,
            max_attempts=claim.max_attempts,
            cancel=held.flag,
        )
        self._claim = claim
        self._dirty = dirty
        self._lines_waiting: list[tuple[int, LogLevel, str, float]] = []
        self._numbered = 0
        self._new_progress: tuple[int, str] | None = None
        self._ended = False
        self.last_progress: tuple[int, str] | None = None
        self._told = False
        self._said_at: float | None = None
        self._guard = threading.Lock()

    def _publish_progress(self, percent: int, stage: str) -> None:
        with self._guard:
            self._new_progress = self.last_progress = (percent, stage)
        self._tell()

    def _publish_log(self, level: LogLevel, message: str) -> None:
        with self._guard:
            self._numbered += 1
            self._lines_waiting.append((self._numbered, level, message, self._said_at or time.monotonic()))
        self._tell()

    def relay_log(self, level: LogLevel, message: str, at: float) -> None:
        """A line that the handler wrote in a process of its own, at the instant `at` of this machine's monotonic clock.

        The limits hold here once more. Raises ValueError or TypeError for what is no level or no instant.
        """
        with self._lock:
            self._said_at = min(float(at), time.monotonic())
            try:
                self.log(message, level)
            finally:
                self._said_at = None

    def reserve_folder(self) -> Path:
        """Name the folder that a handler in a process of its own may make: whoever kills that process clears it.

        The name is chosen here, where the folder is deleted: no handler's process says what that is.
        """
        self._folder = Path(tempfile.gettempdir()) / f"turno-{self.job_id}-{secrets.token_hex(6)}"
        return self._folder

    def _open_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"turno-{self.job_id}-"))

    def _tell(self) -> None:
        with self._guard:
            if self._told or self._ended:
                return
            self._told = True
        self._dirty(self)

    def hand_over(self, ledger: Callable[[Note], None]) -> None:
        """Give what is new since the last call to the ledger, which must not wait; nothing once the execution ended.

        Under the lock, so that no line arrives there after the execution's end.
        """
        with self._guard:
            self._told = False
            if self._ended:
                return
            (percent, stage), self._new_progress = self._new_progress or (None, None), None
            ledger(Note(self._claim.id, self._claim.dispatch_id, percent, stage, self._take_lines()))

    def end(self) -> tuple[LogLine, ...]:
        """The execution is over: nothing more is accepted; answers the lines that were not written yet."""
        with self._guard:
            self._ended = True
            return self._take_lines()

    def _take_lines(self) -> tuple[LogLine, ...]:
        now = time.monotonic()
        lines = tuple(LogLine(n, level, text, max(0.0, now - at)) for n, level, text, at in self._lines_waiting)
        self._lines_waiting.clear()
        return lines

    def clear_folder(self) -> None:
        """Remove the execution's folder, if it was asked for."""
        if self._folder is not None:
            with suppress(OSError):
                shutil.rmtree(self._folder)
