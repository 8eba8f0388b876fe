"""Statements of which none needs another's answer go to the server together: one round trip in place of several.

They are executed one after the other all the same, each on a snapshot of its own: what one locks the next finds locked.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db.backends.utils import CursorWrapper

from jobs.pooler import keeps_its_session
from jobs.transitions.sql import fetch

Rows = list[tuple[Any, ...]]


class Posed:
    """Statements of one block of `together`."""

    def __init__(self, cursor: CursorWrapper, raw: Any) -> None:
        self._cursor = cursor
        self._raw = raw  # the driver's connection, in a pipeline; None: one at a time
        self._asked: list[tuple[Any, Rows]] = []

    def pose(self, sql: str, params: Mapping[str, Any]) -> Rows:
        """Its rows, which are there when the block has ended."""
        if self._raw is None:
            return fetch(self._cursor, sql, params)
        own, rows = self._raw.cursor(), Rows()
        own.execute(sql, params)
        self._asked.append((own, rows))
        return rows

    def read(self) -> None:
        """Wait for all answers. Raises what the first statement that fails raises; those after it were not executed."""
        for own, rows in self._asked:
            rows.extend(own.fetchall())
            own.close()


@contextmanager
def together(cursor: CursorWrapper) -> Iterator[Posed]:
    """A block, within a transaction, whose statements go to the server together. Raises what they raise, at its end.

    One at a time where somebody watches each, where values are put into the text, and where a pooler stands between.
    """
    connection: Any = cursor.db
    watched = connection.execute_wrappers or connection.queries_logged or not keeps_its_session(connection)
    if watched or not connection.settings_dict["OPTIONS"].get("server_side_binding"):
        yield Posed(cursor, None)
        return
    raw = connection.connection
    with connection.wrap_database_errors, raw.pipeline():
        posed = Posed(cursor, raw)
        yield posed
        posed.read()
