"""The free slots of a worker, by queue. Used on the engine's loop only, but for `ask`."""

import asyncio
from collections.abc import Callable, Mapping

from jobs.bounds import QUEUE_SLOTS


class Slots:
    """Slot numbers from 1 within each queue; taken when offered to a claim, given back when the end is written.

    A queue may get more or fewer while work goes on: what runs beyond the new number ends in its time, and nothing
    starts until fewer run than there are slots.
    """

    def __init__(self, queues: Mapping[str, int]) -> None:
        self.queues = dict(queues)
        self.most = len(queues) * QUEUE_SLOTS[1]
        self.changed = asyncio.Event()
        self._free = {queue: list(range(count, 0, -1)) for queue, count in queues.items()}
        self._taken: dict[str, set[int]] = {queue: set() for queue in queues}
        self._asked = dict(queues)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resized: Callable[[str], None] = lambda _queue: None

    def follow(self, loop: asyncio.AbstractEventLoop, resized: Callable[[str], None]) -> None:
        """From now on what is asked for is done on this loop, and `resized` is told of each queue."""
        self._loop, self._resized = loop, resized

    def ask(self, queues: Mapping[str, int]) -> None:
        """These queues are to have so many slots from now on. On any thread."""
        if queues == self._asked:
            return
        self._asked = dict(queues)
        if self._loop is None:
            self._resize()
        else:
            self._loop.call_soon_threadsafe(self._resize)

    def _resize(self) -> None:
        for queue, count in self._asked.items():
            if self.queues[queue] == count:
                continue
            self.queues[queue] = count
            self._free[queue] = [number for number in range(count, 0, -1) if number not in self._taken[queue]]
            self._resized(queue)
            self.changed.set()

    def take(self, most: int) -> list[tuple[str, int]]:
        """Free slots (queue, number) to offer to a claim, queues in turn; they count as taken.

        At most `most`, but one of each queue that has any: a queue left out would starve while the others are idle.
        """
        free = {queue: count for queue in self._free if (count := self.free(queue))}
        offer: list[tuple[str, int]] = []
        for queue, share in _shares(free, max(most, len(free))).items():
            numbers = self._free[queue][-share:]
            del self._free[queue][-share:]
            self._taken[queue].update(numbers)
            offer += [(queue, number) for number in reversed(numbers)]
        return offer

    def free(self, queue: str) -> int:
        """How many slots of the queue are free."""
        return max(0, self.queues[queue] - len(self._taken[queue]))

    @property
    def room(self) -> int:
        """How many slots of all queues are free."""
        return sum(map(self.free, self.queues))

    def give_back(self, queue: str, slot: int) -> None:
        """The slot is free again."""
        self._taken[queue].discard(slot)
        if slot <= self.queues[queue]:
            self._free[queue].append(slot)
        self.changed.set()


def _shares(free: Mapping[str, int], most: int) -> dict[str, int]:
    """How many of each, at most `most` together: as if one after the other had taken one, in turn."""
    left, shares = most, dict(free)
    if sum(free.values()) <= most:
        return shares
    for turn, queue in enumerate(sorted(free, key=lambda name: free[name])):
        shares[queue] = min(free[queue], left // (len(free) - turn))
        left -= shares[queue]
    return shares
