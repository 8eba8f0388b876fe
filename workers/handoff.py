"""From a thread to an event loop, many at a time: the loop is woken once for all that come before it has looked."""

import asyncio
from collections import deque
from collections.abc import Callable


class Handoff[T]:
    """Each waking of a loop from another thread is a system call, in which that thread gives up the interpreter: one
    for each of a batch costs more than the batch. One thread may `put`; `take` is called on the loop, in their order,
    with at least one item."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[list[T]], None]) -> None:
        self._loop = loop
        self._take = take
        self._items: deque[T] = deque()

    def put(self, item: T) -> None:
        """Hand an item over; returns at once. Raises RuntimeError when the loop is closed."""
        self._items.append(item)
        if len(self._items) == 1:  # of what was added to others the loop has been told, and has not emptied it yet
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        taken = list[T]()
        while self._items:
            taken.append(self._items.popleft())
        if taken:
            self._take(taken)
