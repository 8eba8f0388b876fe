"""A thread that writes: whatever is handed in while a statement runs goes into the next one (group commit).

Each has a connection of its own.
"""

import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from typing import Any

from jobs.text import first_line
from workers.clock import boottime
from workers.connections import Backoff, drop_connection

log = logging.getLogger(__name__)
HURRY = 1.0  # seconds after an item in a hurry within which nothing is gathered
STREAM = 0.05  # seconds after a batch of several within which what comes is of the same stream


class Ledger(threading.Thread, ABC):
    """A thread that takes items one by one and writes them in batches of at most `batch_size`.

    In a stream it waits for more to come, at most `gather` seconds: each batch costs the same again, however few are in
    it. What comes alone, after a rest, or in a hurry is written at once.
    """

    def __init__(self, name: str, batch_size: int, reconnect_max: float, *, gather: float = 0.0) -> None:
        super().__init__(name=name, daemon=True)
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._batch_size = batch_size
        self._closing = threading.Event()
        self._patience = 0.0  # until when a closing ledger tries again, on the clock of `boottime`
        self._backoff = Backoff(reconnect_max)
        self._gather = gather
        self._together = 0  # items of the batch before; it took so many seconds to write, until that instant
        self._took = self._written_at = 0.0
        self._hurried_at = float("-inf")
        self.busy = False  # whether a batch is being gathered or written
        self.connected = True

    def put(self, item: Any) -> None:
        """Hand an item in; returns at once."""
        self._items.put(item)

    def hurry(self) -> None:
        """Of what comes now, and for HURRY seconds, nothing is to wait for others."""
        self._hurried_at = boottime()

    @property
    def hurries(self) -> bool:
        """Whether somebody was in a hurry a moment ago."""
        return boottime() - self._hurried_at < HURRY

    def close(self, timeout: float) -> bool:
        """Write what is there and end; False when that takes longer than `timeout` seconds."""
        self._patience = boottime() + timeout
        self._closing.set()
        self._items.put(None)
        self.join(timeout)
        return not self.is_alive()

    def run(self) -> None:
        while True:
            batch = self._drain()
            if batch:
                started = boottime()
                self.write(batch)
                self._written_at = boottime()
                self._took = self._written_at - started
            self.busy = False
            if self._closing.is_set() and self._items.empty():
                drop_connection()
                return

    def _drain(self) -> list[Any]:
        batch = [self._items.get()]
        self.busy = True
        self._fill(batch)
        if len(batch) < self._batch_size and (nap := self._gathering()):
            time.sleep(nap)
            self._fill(batch)
        self._together = len(batch)
        return [item for item in batch if item is not None]

    def _gathering(self) -> float:
        """Seconds to wait for more to come: half of what the batch before took to write, in a stream; else none."""
        if self._together < 2 or self.hurries or boottime() - self._written_at > STREAM:
            return 0.0
        return min(self._gather, self._took / 2)

    def _fill(self, batch: list[Any]) -> None:
        """Add what is there, as far as there is room."""
        while len(batch) < self._batch_size:
            try:
                batch.append(self._items.get_nowait())
            except queue.Empty:
                return

    @abstractmethod
    def write(self, batch: list[Any]) -> None:
        """Write a batch; must not raise."""

    def _wait(self, error: Exception) -> bool:
        """After a failed try: wait. False when the ledger is closing and its time is over."""
        self._away(error)
        delay = self._backoff.delay()
        if not self._closing.wait(delay):
            return True
        left = self._patience - boottime()
        time.sleep(max(0.0, min(delay, left)))
        return left > 0

    def _away(self, error: Exception) -> None:
        if self.connected:
            log.warning("database.away", extra={"ledger": self.name, "error": first_line(error)})
        self.connected = False
        drop_connection()

    def _answered(self) -> None:
        if not self.connected:
            log.info("database.back", extra={"ledger": self.name})
        self.connected = True
        self._backoff.reset()
