"""Collects what running jobs say and hands it to the ledger, at most once an interval a job."""

import threading

from workers.context import WorkerContext
from workers.ledger import EndLedger


class Notes:
    """`dirty` is called by contexts from any thread; `flush` by the engine at each interval."""

    def __init__(self, ledger: EndLedger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._dirty: list[WorkerContext] = []

    def dirty(self, ctx: WorkerContext) -> None:
        """The context has something new to write."""
        with self._lock:
            self._dirty.append(ctx)

    def flush(self) -> None:
        """Hand over what is new."""
        with self._lock:
            waiting, self._dirty = self._dirty, []
        for ctx in waiting:
            ctx.hand_over(self._ledger.note)
