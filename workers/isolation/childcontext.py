"""The JobContext of a handler in a child process: what it says goes to the worker, which writes it."""

import time
from pathlib import Path

from jobs.context import LogLevel
from workers.context import WorkerContext
from workers.isolation.wire import Wire
from workers.leases import Held

PAUSE = 0.1  # seconds between two words of progress


class ChildContext(WorkerContext):
    """Lines go at once, for those before a crash are the ones that are wanted; progress at most every PAUSE."""

    def __init__(self, held: Held, wire: Wire, folder: str) -> None:
        super().__init__(held, lambda ctx: None)
        self._wire = wire
        self._place = Path(folder)
        self._kept: tuple[int, str] | None = None
        self._next = 0.0

    def _publish_progress(self, percent: int, stage: str) -> None:
        with self._guard:
            if self._ended:
                return
            now = time.monotonic()
            if now < self._next:
                self._kept = percent, stage
                return
            self._next, self._kept = now + PAUSE, None
            self._wire.send("progress", percent, stage)

    def _publish_log(self, level: LogLevel, message: str) -> None:
        with self._guard:
            if not self._ended:
                self._wire.send("log", level, message, time.monotonic())

    def _open_folder(self) -> Path:
        self._place.mkdir(mode=0o700)
        return self._place

    def clear_folder(self) -> None:
        """Remove the folder, unless this is a copy of the process, whose original may be using it."""
        if self._wire.is_original:
            super().clear_folder()

    def flush(self) -> None:
        """Say the progress that was kept back; from the watchdog, so without waiting for anything."""
        if self._kept is None or not self._guard.acquire(blocking=False):
            return
        try:
            if self._kept is not None and not self._ended and self._wire.offer("progress", *self._kept):
                self._kept = None
        finally:
            self._guard.release()

    def end(self) -> tuple[()]:
        """Nothing more is accepted; what was kept back is said."""
        with self._guard:
            self._ended = True
            if self._kept is not None:
                self._wire.send("progress", *self._kept)
                self._kept = None
        return ()
