"""The engine's connections: one a thread, closed after an error, opened again by the next use."""

from contextlib import suppress

import psycopg
from django.db import InterfaceError, InternalError, OperationalError, connections

from jobs.backoff import Backoff
from jobs.transitions.sql import sqlstate

__all__ = ["DATABASE_ERRORS", "ENGINE", "Backoff", "close_handler_connections", "drop_connection", "is_servers_fault"]

ENGINE = "engine"
# The database is away, or takes no writes for now (a full disk, a standby not promoted yet: Django's InternalError).
DATABASE_ERRORS = (OperationalError, InterfaceError, InternalError)

SERVERS_FAULTS = ("08", "57P", "53300")  # by their SQLSTATE; others of class 53 and 58 may be one table's


def drop_connection() -> None:
    """Close this thread's engine connection, whatever state it is in; the next use opens another."""
    with suppress(Exception):
        connections[ENGINE].close()


def is_servers_fault(error: BaseException) -> bool:
    """Whether the server said so of itself, or a PgBouncer of it, and not of the statement: it is shutting down, or has
    no room. A PgBouncer passes that on, and keeps the connection to its client. Or the driver says that it is gone."""
    state, cause = sqlstate(error), error.__cause__
    lost = state is None and isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
    return lost or (state or "").startswith(SERVERS_FAULTS)


def close_handler_connections() -> None:
    """Close what a handler opened through the ORM in this thread: no connection stays, none in a forgotten transaction.

    Closing alone would not undo such a transaction: the thread gets new connections.
    """
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()
        del connections[connection.alias]
