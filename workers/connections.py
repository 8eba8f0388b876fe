"""The engine's connections: one a thread, closed after an error, opened again by the next use."""

from contextlib import suppress
from typing import Any
from weakref import WeakSet

from django.db import InterfaceError, InternalError, OperationalError, connections

from jobs.backoff import Backoff
from jobs.pooler import keeps_its_session

__all__ = ["DATABASE_ERRORS", "ENGINE", "Backoff", "close_handler_connections", "drop_connection"]

ENGINE = "engine"
PLAN_ONCE = "SET plan_cache_mode = force_generic_plan"
_planning_once: WeakSet[Any] = WeakSet()  # connections that were told
# The database is away, or takes no writes for now (a full disk, a standby not promoted yet: Django's InternalError).
DATABASE_ERRORS = (OperationalError, InterfaceError, InternalError)


def drop_connection() -> None:
    """Close this thread's engine connection, whatever state it is in; the next use opens another."""
    with suppress(Exception):
        connections[ENGINE].close()


def plan_once() -> None:
    """For a thread that says the same few statements all the time: its session plans each of them once, whatever its
    values. To plan a claim for few slots costs more than the claim. Raises DATABASE_ERRORS."""
    connection: Any = connections[ENGINE]
    connection.ensure_connection()
    if keeps_its_session(connection) and connection.connection not in _planning_once:
        connection.connection.execute(PLAN_ONCE)
        _planning_once.add(connection.connection)


def close_handler_connections() -> None:
    """Close what a handler opened through the ORM in this thread: no connection stays, none in a forgotten transaction.

    Closing alone would not undo such a transaction: the thread gets new connections.
    """
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()
        del connections[connection.alias]
