"""Hears what a test's transactions announce: a connection of its own that LISTENs."""

from types import TracebackType
from typing import Self
from uuid import uuid4

import psycopg
from django.db import connections

from jobs.transitions import CONTROL, DUE, GATES, OUTBOX, WORK

MARK = "turno_test_mark"


def raw_connection() -> psycopg.Connection:
    """A plain psycopg connection (autocommit) to the tests' database, outside Django."""
    settings = connections["default"].settings_dict
    return psycopg.connect(
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        dbname=settings["NAME"],
        autocommit=True,
    )


class Ear:
    """Listens on the engine's channels from its creation on."""

    def __init__(self) -> None:
        self._connection = raw_connection()
        for channel in (WORK, CONTROL, DUE, OUTBOX, GATES, MARK):
            self._connection.execute(f"LISTEN {channel}")

    def heard(self) -> list[tuple[str, str]]:
        """What was announced since the last call, as (channel, payload), in order of commit.

        Notifications come in the order of commits, so a mark sent now says when everything before it was heard.
        """
        mark = str(uuid4())
        self._connection.execute("SELECT pg_notify(%s, %s)", [MARK, mark])
        heard = []
        for notice in self._connection.notifies(timeout=60):
            if notice.channel == MARK:
                if notice.payload == mark:
                    return heard
            else:
                heard.append((notice.channel, notice.payload))
        raise AssertionError("the mark never came back")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
