"""When a worker looks for work: somebody has said that there is some, or a poll's time has come.

All workers of a queue hear of the same job, and one of them gets it. The others' claims cost its start time, since they
want the same processors at the same moment. So who runs something already, or came too late the last time, looks a
moment later: the job goes to a worker that is idle, and mostly to the one that is quickest. When that one is frozen or
full the others are there after that moment.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

BUSY = 0.0012  # seconds: about what it takes until an idle one has asked, and nobody sees it
LATE = 0.003  # until it has the answer as well: where it was quicker the last time there is nothing left to find


class Bell:
    """Of one consumer, on its loop. `poll`: seconds; `busy`: whether this worker runs something."""

    def __init__(self, poll: float, busy: Callable[[], bool]) -> None:
        self._poll = poll
        self._busy = busy
        self._rung = asyncio.Event()
        self._call_later = asyncio.get_running_loop().call_later
        self._later: asyncio.TimerHandle | None = None
        self._told = False  # that the last look was because somebody said something
        self._late = False  # at the last such look others had been quicker

    def ring(self) -> None:
        """There is work, or something else to do, for this worker: look now."""
        self._rung.set()

    def hear(self) -> None:
        """There is work for somebody: look when it is this worker's turn."""
        busy = self._busy()
        if not (self._late or busy):
            self._rung.set()
        elif self._later is None:
            self._later = self._call_later(BUSY if busy else LATE, self._now)

    def _now(self) -> None:
        self._later = None
        self._rung.set()

    def look(self) -> None:
        """What is said from now on is not known to the look that begins."""
        self._rung.clear()

    def looked(self, *, found: bool) -> None:
        """The look is over."""
        if found or self._told:
            self._late = not found
        self._told = False

    async def wait(self) -> None:
        """Until it rings, or for a poll's time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll * random.uniform(1, 2)):  # noqa: S311  (spreads workers, guards nothing)
                await self._rung.wait()
                self._told = True
