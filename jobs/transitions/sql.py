"""How the verbs talk to PostgreSQL: one transaction each, lock conflicts retried, arrays in, rows out.

Law 6: every multi-row write locks jobs by id; a deadlock or serialization error (40P01, 40001) repeats the whole
transaction, unless it is part of the caller's.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import orjson
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from jobs import announcements
from jobs.pooler import keeps_its_session
from jobs.reconnect import replace_broken

CONFLICTS = frozenset({"40P01", "40001"})
FORGOTTEN = frozenset({"26000", "42P05"})  # a prepared statement that the session does not have, or has already
NO_SUCH_ROW = "23503"  # a foreign key of ours names one that is gone
# Classes of errors that the values themselves cause: data, constraints, and a limit that a value exceeds (its nesting,
# its size in an index). Django calls the last an OperationalError; repeated, it would fail for ever.
BAD_VALUES = ("22", "23", "54")
TRIES = 6
USUAL = 10  # elements of an array that PostgreSQL expects
NOTIFY = """
SELECT pg_notify(channel, payload)
FROM unnest(%(channels)s::text[], %(payloads)s::text[]) AS said(channel, payload)
"""
WORK, CONTROL = announcements.WORK, announcements.CONTROL
DUE, OUTBOX = announcements.DUE, announcements.OUTBOX
GATES = announcements.GATES


def sqlstate(error: BaseException) -> str | None:
    """The five characters by which PostgreSQL names the error, where it came from there."""
    return getattr(error.__cause__, "sqlstate", None) or getattr(error, "sqlstate", None)


def refused(error: BaseException) -> bool:
    """Whether the database, or psycopg before it, refused the values of a statement; any other failure may pass."""
    if isinstance(error, UnicodeError):
        return True
    if isinstance(error, OperationalError):
        return (sqlstate(error) or "").startswith(BAD_VALUES)
    return isinstance(error, (DataError, IntegrityError))


def in_transaction[T](using: str, work: Callable[[CursorWrapper], T], *, single: bool = False) -> T:
    """Run `work` in one transaction of the alias `using`; joins the caller's when there is one.

    `single`: of what `work` says one statement at most writes, which is a transaction by itself: BEGIN and COMMIT are
    spared, but where each transaction has to be told its limits.

    A connection that was closed while it was idle is replaced first, so that a process that rested goes on. Raises what
    `work` raises. Deadlocks and serialization errors repeat it up to TRIES times, with jitter; so does a prepared
    statement that the session has lost.
    """
    connection = connections[using]
    joined = connection.in_atomic_block
    for attempt in range(1, TRIES + 1):
        try:
            replace_broken(using)
            alone = single and not joined and keeps_its_session(connection) and connection.get_autocommit()
            with _alone(connection) if alone else transaction.atomic(using=using), connection.cursor() as cursor:
                return work(cursor)
        except DatabaseError as error:
            again = FORGOTTEN if joined else CONFLICTS | FORGOTTEN  # (within the caller's there is a savepoint)
            if sqlstate(error) not in again or attempt == TRIES:
                raise
            time.sleep(random.uniform(0, 0.02) * attempt)  # noqa: S311  (spreads rivals, guards nothing)
    raise AssertionError("unreachable")


@contextmanager
def _alone(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """In place of a transaction, whose end would look after a connection that broke, or that has lost its statements:
    the driver forgets them when it sees a ROLLBACK."""
    try:
        yield
    except BaseException as error:
        raw: Any = connection.connection
        if raw is not None and not raw.closed and sqlstate(error) in FORGOTTEN:
            with suppress(raw.Error):
                raw.execute("DEALLOCATE ALL")  # which it understands as well
        if raw is not None and raw.closed:
            connection.close()
        raise


def unnest(alias: str, columns: Mapping[str, str]) -> str:
    """The SQL of a table made of array parameters: `unnest(%(id)s::uuid[], …) AS alias(id, …)`."""
    arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in columns.items())
    return f"unnest({arrays}) AS {alias}({', '.join(columns)})"


def arrays(columns: Iterable[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The parameters of `unnest`: one list a column, from one sequence a row."""
    names = list(columns)
    turned = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {name: list(values) for name, values in zip(names, turned, strict=True)}


def filled[T](values: Sequence[T]) -> list[T | None]:
    """The values and as many NULLs as make USUAL of them, for an array of which a NULL finds nothing.

    PostgreSQL takes a parameter for an array of ten. For one of fewer it hopes for a cheaper plan, and makes it anew
    each time, which takes twice as long as the statement itself.
    """
    return [*values, *[None] * (USUAL - len(values))]


def filled_arrays(columns: Iterable[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """As `arrays`, each `filled`."""
    return {name: filled(values) for name, values in arrays(columns, rows).items()}


def as_array(values: Iterable[int | str | None]) -> str:
    """An array as PostgreSQL writes it, for a parameter with a cast.

    The driver looks at each element of a list by a regular expression: for an offer of a hundred slots that was more
    work than all else that a claim does on this side.
    """
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: int | str | None) -> str:
    return "NULL" if value is None else '"' + str(value).replace("\\", r"\\").replace('"', r"\"") + '"'


def json_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The parameter of `json_to_recordset`: a JSON list of objects.

    What is no JSON for PostgreSQL (half of a surrogate pair, a number of more than 64 bits) is its to refuse.
    """
    try:
        return orjson.dumps(rows).decode()
    except TypeError:
        return json.dumps(rows, default=str)


def fetch(cursor: CursorWrapper, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Execute and return every row."""
    cursor.execute(sql, params)
    return cursor.fetchall()


def notify(cursor: CursorWrapper, channel: str, payloads: Iterable[str]) -> None:
    """Send each distinct payload once when the transaction commits."""
    notify_all(cursor, ((channel, payload) for payload in payloads))


def notify_all(cursor: CursorWrapper, notices: Iterable[tuple[str, str]]) -> None:
    """Send each distinct (channel, payload) once when the transaction commits; none is no statement."""
    distinct = sorted(set(notices))
    if distinct:
        cursor.execute(NOTIFY, arrays(("channels", "payloads"), distinct))
