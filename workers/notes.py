"""Collects what running jobs say and hands it to the ledger, at most once an interval a job."""

from collections import deque

from workers.context import WorkerContext
from workers.ledger import EndLedger


class Notes:
    """`dirty` is called by contexts from any thread, in the middle of anything; `flush` by the engine at each interval.

    No lock: the engine itself calls `dirty` where the collector, run in its thread, calls a handler's destructor.
    """

    def __init__(self, ledger: EndLedger) -> None:
        self._ledger = ledger
        self._dirty: deque[WorkerContext] = deque()

    def dirty(self, ctx: WorkerContext) -> None:
        """The context has something new to write."""
        self._dirty.append(ctx)

    def flush(self) -> None:
        """Hand over what is new; what becomes so meanwhile waits for the next time."""
        for _ in range(len(self._dirty)):
            self._dirty.popleft().hand_over(self._ledger.note)
