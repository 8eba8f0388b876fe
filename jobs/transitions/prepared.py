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

from jobs.pooler import BACKEND, keeps_its_session
from jobs.transitions.sql import fetch

# Sessions that may keep what their drivers do not know, or lack what they believe in: something went wrong there.
_astray: WeakSet[Any] = WeakSet()
_own: WeakSet[Any] = WeakSet()  # sessions of which it is known that no pooler lends them


def fetch_prepared(cursor: CursorWrapper, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """As `fetch`, by a statement that the session of `cursor` keeps where it is ours alone.

    Texts must be few and values parameters: the driver keeps the last hundred texts of a connection. Raises what
    `fetch` does, and DatabaseError (`sql.FORGOTTEN`) where the session has forgotten its statements, by DISCARD ALL:
    once, then they are prepared anew.
    """
    connection: Any = cursor.db
    if not keeps_its_session(connection) or connection.settings_dict["OPTIONS"].get("server_side_binding"):
        return fetch(cursor, sql, params)
    raw = connection.connection
    if not _is_own(cursor, raw):
        return fetch(cursor, sql, params)
    before, raw.prepare_threshold = raw.prepare_threshold, 0
    try:
        if raw in _astray:
            with connection.wrap_database_errors:
                raw.execute("DEALLOCATE ALL")  # which the driver understands
            _astray.discard(raw)
        bound = ServerBindingCursor(raw)
        with connection.make_debug_cursor(bound) if connection.queries_logged else connection.make_cursor(bound) as own:
            return fetch(own, sql, params)
    except DatabaseError:
        # The driver forgets a statement that it has prepared when it fails the first time; the session keeps it.
        _astray.add(raw)
        raise
    finally:
        # Not for good: the driver would remember each text of Django's, with all its values, to count them.
        raw.prepare_threshold = before


def _is_own(cursor: CursorWrapper, raw: Any) -> bool:
    """Asked once a connection: a pooler that nobody has named is known by the number of the server's process."""
    if raw not in _own and fetch(cursor, BACKEND, {})[0][0] == raw.info.backend_pid:
        _own.add(raw)
    return raw in _own
