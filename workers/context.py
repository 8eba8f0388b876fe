"""The worker's JobContext: progress and log lines are kept here and written in batches, at most once a second a job."""

import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from jobs.context import JobContext, LogLevel
from jobs.outcomes import LogLine
from jobs.transitions import Note
from workers.leases import Held

TOKENS = 256
_tokens: deque[str] = deque()


class WorkerContext(JobContext):
    """One execution's context. `dirty` is told once when there is something new to write, and must not wait.

    Two sides meet here, and never wait for each other. The handler *says*: in any thread, the engine's too where the
    collector calls a destructor of the handler's; that side takes no lock of this class, it only appends to
    `_lines_waiting` and replaces `last_progress`. The worker *takes*: the engine by `hand_over`, and who concludes the
    execution by `end`; `_taking` keeps these two apart, and all that only they touch (`_numbered`, `_handed`).
    """

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
        self._since = time.monotonic()
        self._said_at: float | None = None  # of the line that is being relayed
        self.last_progress: tuple[int, str] | None = None
        self._lines_waiting: deque[tuple[LogLevel, str, float]] = deque()
        self._told = False  # `dirty` was, and nothing was taken since
        self._ended = False
        self._taking = threading.Lock()
        self._numbered = 0
        self._handed: tuple[int, str] | None = None  # the progress that was taken last

    def _publish_progress(self, percent: int, stage: str) -> None:
        self.last_progress = (percent, stage)
        self._tell()

    def _publish_log(self, level: LogLevel, message: str) -> None:
        self._lines_waiting.append((level, message, self._said_at or time.monotonic()))
        self._tell()

    def _tell(self) -> None:
        if not self._told and not self._ended:
            self._told = True
            self._dirty(self)

    def relay_log(self, level: LogLevel, message: str, at: float) -> None:
        """A line that the handler wrote in a process of its own, at the instant `at` of this machine's monotonic clock:
        within the execution, whatever that process says.

        The limits hold here once more. Raises ValueError or TypeError for what is no level or no instant.
        """
        with self._lock:
            self._said_at = max(self._since, min(float(at), time.monotonic()))
            try:
                self.log(message, level)
            finally:
                self._said_at = None

    def hand_over(self, ledger: Callable[[Note], None]) -> None:
        """Give what is new since the last call to the ledger, which must not wait; nothing once the execution ended.

        Never waits: where `end` is at work, that takes what there is. The ledger is called before `end` can go on, so
        that no line arrives there after the execution's end.
        """
        if not self._taking.acquire(blocking=False):
            return
        try:
            self._told = False
            if self._ended:
                return
            progress, lines = self.last_progress, self._take_lines()
            if progress is self._handed and not lines:
                return
            percent, stage = (None, None) if progress is None or progress is self._handed else progress
            self._handed = progress
            ledger(Note(self._claim.id, self._claim.dispatch_id, percent, stage, lines))
        finally:
            self._taking.release()

    def end(self) -> tuple[LogLine, ...]:
        """The execution is over: nothing more is accepted; answers the lines that were not written yet."""
        self._ended = True
        with self._taking:
            return self._take_lines()

    def _take_lines(self) -> tuple[LogLine, ...]:
        now, lines = time.monotonic(), []
        while self._lines_waiting:
            level, text, at = self._lines_waiting.popleft()
            self._numbered += 1
            lines.append(LogLine(self._numbered, level, text, max(0.0, now - at)))
        return tuple(lines)

    # The execution's folder.

    def reserve_folder(self) -> str:
        """Name the folder that a handler in a process of its own may make: `give_up_folder` says what is to be cleared.

        The name is chosen here, where the folder is deleted: no handler's process says what that is.
        """
        name = f"{tempfile.gettempdir()}/turno-{self.job_id}-{_token()}"
        self._folder = Path(name)
        return name

    def _open_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"turno-{self.job_id}-"))

    def give_up_folder(self) -> Path | None:
        """The folder, if there may be one, for who removes it: it is the execution's no more."""
        folder, self._folder = self._folder, None
        return folder

    def clear_folder(self) -> None:
        """Remove the execution's folder, if it was asked for."""
        remove_folder(self.give_up_folder())


def _token() -> str:
    """Six random bytes as text, of which many are made at once: to ask the system for each costs more than all else of
    a job's folder, most of which are never made."""
    try:
        return _tokens.pop()
    except IndexError:
        text = secrets.token_hex(TOKENS * 6)
        _tokens.extend(text[at : at + 12] for at in range(12, len(text), 12))
        return text[:12]


def remove_folder(folder: Path | None) -> None:
    """Remove a folder and all that can be removed in it; nothing for None, or where there is none."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
