"""The JobContext of a handler in a child process: what it says goes to the worker, which writes it."""

import time
from pathlib import Path

from jobs.context import LogLevel
from workers.context import WorkerContext
from workers.isolation import frames
from workers.isolation.wire import Wire
from workers.leases import Held

PAUSE = 0.1  # seconds between two words of progress


class ChildContext(WorkerContext):
    """Lines go at once, for those before a crash are the ones that are wanted; progress at most every PAUSE.

    No lock but JobContext's is taken: the wire keeps the order, and calls `_news` when progress has its turn, so that
    the latest is said last. After `end` nothing is said any more, also not what another thread has queued meanwhile:
    the worker would take it for the next job's.
    """

    def __init__(self, held: Held, wire: Wire, folder: str) -> None:
        super().__init__(held, lambda ctx: None)
        self._wire = wire
        self._place = folder
        self._said: tuple[int, str] | None = None  # the progress that was said last
        self._next = 0.0

    def _publish_progress(self, percent: int, stage: str) -> None:
        self.last_progress = (percent, stage)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PAUSE
            self._wire.put(self._news)

    def _publish_log(self, level: LogLevel, message: str) -> None:
        if self._ended:
            return
        frame = frames.pack("log", level, message, time.monotonic())
        self._wire.put(lambda: None if self._ended else frame)

    def _news(self) -> bytes | None:
        """The latest progress, if it was not said. Called by who writes."""
        progress = self.last_progress
        if progress is None or progress is self._said or self._ended:
            return None
        self._said = progress
        return frames.pack("progress", *progress)

    def flush(self) -> None:
        """Say the progress that was kept back; from the watchdog, so without waiting for anything."""
        new = self.last_progress is not self._said and not self._ended
        self._wire.offer(self._news if new else None)

    def end(self) -> tuple[()]:
        """Nothing more is accepted; what was kept back is said."""
        if self.last_progress is not self._said:
            self._wire.put(self._news)
        self._wire.finish()
        self._ended = True
        return ()

    def _open_folder(self) -> Path:
        place = Path(self._place)
        place.mkdir(mode=0o700)
        return place

    def clear_folder(self) -> None:
        """Not yet: what the handler has left running may still write there (`Child.serve`)."""
