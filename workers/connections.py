"""The engine's connections: one a thread, closed after an error, opened again by the next use."""

import random
from collections.abc import Callable
from contextlib import suppress

from django.db import InterfaceError, OperationalError, connections

ENGINE = "engine"
DATABASE_ERRORS = (OperationalError, InterfaceError)


def drop_connection() -> None:
    """Close this thread's engine connection, whatever state it is in; the next use opens another."""
    with suppress(Exception):
        connections[ENGINE].close()


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


def fresh[T](work: Callable[[], T]) -> T:
    """Run `work` on this thread's engine connection; a broken one is dropped, so that the next call begins anew."""
    try:
        return work()
    except DATABASE_ERRORS:
        drop_connection()
        raise
