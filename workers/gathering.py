"""Free slots wait for others that are about to be free: each claim costs the same again, however few jobs it brings."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

LONGEST = 0.003  # seconds that free slots wait at most


class Gathering:
    """Of one consumer, on its loop. `freed` is set when a slot becomes free; `coming` says whether more are about to
    be, since ends are being written, and jobs wait for them."""

    def __init__(self, freed: asyncio.Event, coming: Callable[[], bool]) -> None:
        self._freed = freed
        self._coming = coming
        self._clock = asyncio.get_running_loop().time
        self._longest = LONGEST
        self._took = 0.0

    async def slots(self) -> None:
        """Until one is free, and the others that are coming."""
        self._freed.clear()
        await self._freed.wait()
        await self.others()

    async def others(self) -> None:
        """Until those that are coming have come, or for as long as the last claim took: those that come meanwhile
        would have to wait for such a claim as long."""
        until = self._clock() + min(self._longest, self._took)
        while self._coming() and (left := until - self._clock()) > 0:
            self._freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._freed.wait()

    async def timed[T](self, claim: Awaitable[T]) -> T:
        """Make a claim, and keep how long it took."""
        asked = self._clock()
        try:
            return await claim
        finally:
            self._took = self._clock() - asked
