"""Two connections and no luck: one holds a row, the other is seen waiting for it, then the first lets go.

The winner is the test's own thread (a verb inside `holding()` stays uncommitted until the block ends, or plain SQL);
the loser is a verb in a thread, on the engine's connection.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections, transaction

from tests.transitions.ear import raw_connection

PATIENCE = 120.0  # seconds until a test that hangs is told so
LOOK_AGAIN = 0.005
WAITS = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"


class Other[T]:
    """A call that runs in a thread of its own with its own connection to the database."""

    def __init__(self, call: Callable[[], T], *, using: str = "engine", before: str | None = None) -> None:
        self._call, self._using, self._before = call, using, before
        self._pid: Future[int] = Future()
        self._answer: Future[T] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            connection = connections[self._using]
            connection.ensure_connection()
            if self._before:
                with connection.cursor() as cursor:
                    cursor.execute(self._before)
            self._pid.set_result(connection.connection.info.backend_pid)
            self._answer.set_result(self._call())
        except BaseException as error:  # noqa: BLE001  (raised again by `answer`)
            if not self._pid.done():
                self._pid.set_exception(error)
            self._answer.set_exception(error)
        finally:
            connections.close_all()

    def is_waiting(self) -> None:
        """Returns when the call is seen waiting for a lock; fails when it ends without having waited."""
        pid, deadline = self._pid.result(PATIENCE), monotonic() + PATIENCE
        with raw_connection() as watcher:
            while not watcher.execute(WAITS, [pid]).fetchall():
                assert not self._answer.done(), f"it did not wait: {self._answer}"
                assert monotonic() < deadline, "it is not seen waiting"
                threading.Event().wait(LOOK_AGAIN)

    def answer(self) -> T:
        """What the call returned; raises what it raised."""
        answer = self._answer.result(PATIENCE)
        self._thread.join(PATIENCE)
        return answer


@contextmanager
def holding(*, roll_back: bool = False) -> Iterator[None]:
    """Verbs in this block (alias default) keep their locks until it ends."""
    with transaction.atomic():
        yield
        transaction.set_rollback(roll_back)


@contextmanager
def rival() -> Iterator[psycopg.Connection]:
    """A plain connection in a transaction of its own: what it locks is held until it commits or the block ends."""
    connection = raw_connection()
    connection.autocommit = False
    try:
        yield connection
    finally:
        # The server hears of a closed connection at its leisure; only a rollback that was answered has freed the rows.
        with suppress(psycopg.Error):
            connection.rollback()
        connection.close()


def lock(connection: psycopg.Connection, id_: UUID, strength: str = "FOR NO KEY UPDATE") -> None:
    """Lock a job's row, waiting for it."""
    connection.execute(f"SELECT 1 FROM turno.jobs WHERE id = %s {strength}", [id_])


def is_free(id_: UUID) -> bool:
    """Whether nobody holds the job's row at this moment."""
    with raw_connection() as other:
        found = other.execute("SELECT 1 FROM turno.jobs WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", [id_]).fetchall()
    return bool(found)


def together[T](calls: list[Callable[[], T]]) -> list[T]:
    """Run all calls at once, each in a thread with its own connection; their answers, in order."""
    barrier = threading.Barrier(len(calls), timeout=PATIENCE)

    def started(call: Callable[[], T]) -> Callable[[], T]:
        def run() -> Any:
            barrier.wait()
            return call()

        return run

    return [other.answer() for other in [Other(started(call)) for call in calls]]
