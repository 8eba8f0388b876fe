"""Waiting between tries: longer each time, with jitter, so that a fleet does not come back in one instant."""

import random


class Backoff:
    """Waits between tries to reach the database: from 0.1 s, doubling, at most `most` seconds, with jitter."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._next = 0.1

    def reset(self) -> None:
        """It answered."""
        self._next = 0.1

    def delay(self) -> float:
        """Seconds to wait before the next try."""
        delay, self._next = self._next, min(self._most, self._next * 2)
        return min(self._most, delay * random.uniform(0.5, 1.5))  # noqa: S311  (spreads workers, guards nothing)
