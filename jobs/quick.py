"""Statements of retention: in small batches, and whatever the planner chose, none takes longer than MOST seconds."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.errors import QueryCanceled

from jobs.reconnect import replace_broken

MOST = 2.0  # seconds of one statement
LIMIT = "SELECT set_config('statement_timeout', %(limit)s, true)"


def limit(cursor: CursorWrapper) -> None:
    """From here to the end of the transaction no statement takes longer. Within a caller's transaction that is the
    caller's to say."""
    if len(cursor.db.atomic_blocks) <= 1:
        cursor.execute(LIMIT, {"limit": f"{MOST * 1000:.0f}ms"})


@contextmanager
def batch(using: str) -> Iterator[CursorWrapper]:
    """One transaction of the alias `using`, limited as above. Raises what its statements raise."""
    replace_broken(using)
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        limit(cursor)
        yield cursor


def too_slow(error: BaseException) -> bool:
    """Whether a statement was cancelled because its time was over: a smaller batch may do."""
    return isinstance(error.__cause__, QueryCanceled)
