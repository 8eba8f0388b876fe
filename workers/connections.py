"""The engine's connections: one a thread, closed after an error, opened again by the next use."""

import random
from contextlib import suppress

from django.db import InterfaceError, InternalError, OperationalError, connections

ENGINE = "engine"
# The database is away, or takes no writes for now (a full disk, a standby not promoted yet: Django's InternalError).
DATABASE_ERRORS = (OperationalError, InterfaceError, InternalError)


def drop_connection() -> None:
    """Close this thread's engine connection, whatever state it is in; the next use opens another."""
    with suppress(Exception):
        connections[ENGINE].close()


def close_handler_connections() -> None:
    """Close what a handler opened through the ORM in this thread: no connection stays, none in a forgotten transaction.

    Closing alone would not undo such a transaction: the thread gets new connections.
    """
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()
        del connections[connection.alias]


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
