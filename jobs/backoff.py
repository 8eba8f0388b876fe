"""Waiting between tries: longer each time, with jitter, so that a fleet does not come back in one instant."""

import random


class Backoff:
    """Waits between tries to reach a server: from `first` seconds, doubling, at most `most`, with jitter."""

    def __init__(self, most: float, first: float = 0.1) -> None:
        self._most = most
        self._first = self._next = first

    def reset(self) -> None:
        """It answered."""
        self._next = self._first

    def delay(self) -> float:
        """Seconds to wait before the next try."""
        delay, self._next = self._next, min(self._most, self._next * 2)
        return min(self._most, delay * random.uniform(0.5, 1.5))  # noqa: S311  (spreads workers, guards nothing)
