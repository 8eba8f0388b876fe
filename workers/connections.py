"""The engine's connections: one a thread, closed after an error, opened again by the next use."""

from contextlib import suppress

from django.db import InterfaceError, InternalError, OperationalError, connections

from jobs.backoff import Backoff

__all__ = ["DATABASE_ERRORS", "ENGINE", "Backoff", "close_handler_connections", "drop_connection"]

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
