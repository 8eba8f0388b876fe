"""The free slots of a worker, by queue. Used on the engine's loop only."""

import asyncio
from collections.abc import Mapping


class Slots:
    """Slot numbers from 1 within each queue; taken when offered to a claim, given back when the end is written."""

    def __init__(self, queues: Mapping[str, int]) -> None:
        self._free = {queue: list(range(count, 0, -1)) for queue, count in queues.items()}
        self.queues = dict(queues)
        self.total = sum(queues.values())
        self.changed = asyncio.Event()

    def take(self, most: int) -> list[tuple[str, int]]:
        """Free slots (queue, number) to offer to a claim, queues in turn; they count as taken.

        At most `most`, but one of each queue that has any: a queue left out would starve while the others are idle.
        """
        offer: list[tuple[str, int]] = []
        most = max(most, sum(1 for free in self._free.values() if free))
        while len(offer) < most:
            waiting = [queue for queue, free in self._free.items() if free]
            if not waiting:
                break
            for queue in waiting[: most - len(offer)]:
                offer.append((queue, self._free[queue].pop()))
        return offer

    def free(self, queue: str) -> int:
        """How many slots of the queue are free."""
        return len(self._free[queue])

    def give_back(self, queue: str, slot: int) -> None:
        """The slot is free again."""
        self._free[queue].append(slot)
        self.changed.set()
