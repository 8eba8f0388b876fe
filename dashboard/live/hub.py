"""The hub of a web process: it hears for all sockets while there are any, and folds what it hears for 250 ms.

It starts with the first socket and stops some seconds after the last one left (daphne has no lifespan). After a time in
which it could not hear, everything may have changed. Lives on the event loop; one for each.
"""

import asyncio
import logging
from typing import Protocol
from weakref import WeakKeyDictionary

from dashboard.live import sources
from jobs.carriers import ByLayer
from jobs.nudge import Nudge

log = logging.getLogger(__name__)
FOLD = 0.25  # seconds
LINGER = 5.0  # seconds


class Ear(Protocol):
    """A socket, as the hub knows it. Neither call waits."""

    def tell(self, nudge: Nudge) -> None:
        """Something changed."""

    def hearing(self, hears: bool) -> None:
        """The hub hears the database, or no longer does."""


class Hub:
    """What one event loop's sockets share."""

    def __init__(self) -> None:
        self._ears: set[Ear] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping: asyncio.TimerHandle | None = None
        self._folding: asyncio.TimerHandle | None = None
        self._pending = Nudge()
        self.hears = False

    def __len__(self) -> int:
        return len(self._ears)

    @property
    def running(self) -> bool:
        """It hears, or tries to."""
        return bool(self._tasks)

    def join(self, ear: Ear) -> None:
        """A socket is open."""
        self._ears.add(ear)
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None
        if not self._tasks:
            self._start()

    def leave(self, ear: Ear) -> None:
        """A socket has closed."""
        self._ears.discard(ear)
        if not self._ears and self._tasks and self._stopping is None:
            self._stopping = asyncio.get_running_loop().call_later(LINGER, self._stop)

    def _start(self) -> None:
        self._tasks = [asyncio.create_task(sources.listen(self.heard, self._hearing), name="screens-listen")]
        if ByLayer.configured():
            self._tasks.append(asyncio.create_task(sources.over_layer(self.heard), name="screens-layer"))
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def _stop(self) -> None:
        self._stopping = None
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """A fault in it must not leave the sockets deaf for good."""
        if task.cancelled() or task not in self._tasks:
            return
        log.error("screens.hub_failed", exc_info=task.exception())
        self._stop()
        if self._ears:
            asyncio.get_running_loop().call_later(LINGER, self._again)

    def _again(self) -> None:
        if self._ears and not self._tasks:
            self._start()

    def _hearing(self, hears: bool) -> None:
        if hears == self.hears:
            return
        self.hears = hears
        for ear in list(self._ears):
            ear.hearing(hears)
        if hears:
            self.heard(Nudge.everything())

    def heard(self, nudge: Nudge) -> None:
        """Fold it in; the sockets are told within FOLD seconds."""
        self._pending.add(nudge)
        if self._folding is None:
            self._folding = asyncio.get_running_loop().call_later(FOLD, self._tell)

    def _tell(self) -> None:
        self._folding = None
        nudge, self._pending = self._pending, Nudge()
        for ear in list(self._ears):
            ear.tell(nudge)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
