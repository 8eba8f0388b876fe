"""Statements that the server's session keeps: planned once, not each time that somebody says them.

The alias `engine` prepares by itself. On the others values are put into the text, since Django's ORM needs that, and
the server parses and plans a text that it has never seen: for an INSERT of one job that is more than the INSERT.
Where a pooler lends sessions nothing is kept in one.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from django.db import DatabaseError
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper

from jobs.pooler import keeps_its_session
from jobs.transitions.sql import fetch, sqlstate

NO_SUCH_STATEMENT = "26000"
# Sessions that somebody has told to forget their statements (DISCARD ALL), which their drivers do not know yet.
_forgetful: WeakSet[Any] = WeakSet()


def fetch_prepared(cursor: CursorWrapper, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """As `fetch`, by a statement that the session of `cursor` keeps where it is ours alone.

    Texts must be few and values parameters: the driver keeps the last hundred texts of a connection. Raises what
    `fetch` does, and DatabaseError (NO_SUCH_STATEMENT) where the session has forgotten its statements: once, then they
    are prepared anew.
    """
    connection: Any = cursor.db
    if not keeps_its_session(connection) or connection.settings_dict["OPTIONS"].get("server_side_binding"):
        return fetch(cursor, sql, params)
    raw = connection.connection
    before, raw.prepare_threshold = raw.prepare_threshold, 0
    try:
        if raw in _forgetful:
            raw.execute("DEALLOCATE ALL")  # which the driver understands
            _forgetful.discard(raw)
        bound = ServerBindingCursor(raw)
        with connection.make_debug_cursor(bound) if connection.queries_logged else connection.make_cursor(bound) as own:
            return fetch(own, sql, params)
    except DatabaseError as error:
        if sqlstate(error) == NO_SUCH_STATEMENT:
            _forgetful.add(raw)
        raise
    finally:
        # Not for good: the driver would remember each text of Django's, with all its values, to count them.
        raw.prepare_threshold = before
