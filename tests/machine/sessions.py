"""Connections whose transactions are stepped: each stops before a statement, and before its COMMIT, until it may go on.

A thread each, with a Django connection of its own. Who waits for a lock is seen waiting in the database; a step ends
when everybody has stopped, has ended, or waits for somebody who has stopped.
"""

import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from django.db import connections

from tests.laws.guards import BrokenPromise
from tests.transitions.ear import raw_connection

PATIENCE = 60.0  # seconds until a machine that hangs is told so
LOOK_AGAIN = 0.004
QUIET = ("SAVEPOINT", "RELEASE", "ROLLBACK", "SELECT current_setting", "\nSELECT pg_notify")  # no reason to stop
# They stay in their transactions for as long as the machine likes.
UNHURRIED = "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0"
WAITS = """
SELECT pid, pg_blocking_pids(pid) FROM pg_stat_activity
WHERE pid = ANY(%s) AND wait_event_type = 'Lock'
"""
GONE = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"


class Killed(BaseException):
    """The process that called is dead, or its connection is: nothing of it goes on."""


class Is(Enum):
    """What a session does."""

    IDLE = "has nothing to do"
    RUNNING = "runs"
    STOPPED = "waits for a step"
    BLOCKED = "waits for a lock"


class Session:
    """One connection. `begin` gives it a call, `step` lets it go to its next stop, `answer` has what came of it."""

    def __init__(self, using: str) -> None:
        self.using = using
        self._condition = threading.Condition()
        self._call: Callable[[], Any] | None = None
        self._over = self._free = False
        self._fate: str | None = None
        self._wrote = False
        self.state = Is.IDLE
        self.pid = 0
        self.commits = 0  # of transactions that may have changed something
        self.at = ""  # the statement before which it has stopped
        self.dead = False  # the call ended because its connection was cut, whatever it made of that
        self.answer: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self, call: Callable[[], Any], *, free: bool = False) -> None:
        """Call it; it stops before its first statement, `free`: nowhere."""
        assert self.state is Is.IDLE
        self.answer = self.error = None
        self.dead = False
        self._free = free
        self._go(call)

    def step(self) -> None:
        """Let the statement go before which it has stopped."""
        assert self.state is Is.STOPPED
        self._go()

    def kill(self, *, after_commit: bool = False) -> None:
        """Its end, where it has stopped: before the statement, or, of what commits, after it and before its answer."""
        assert self.state is Is.STOPPED
        self._fate = "late" if after_commit and self.at == "COMMIT" else "now"
        self._go()

    def close(self) -> None:
        """The thread ends, and its connection."""
        self._over = True
        self._go()
        self._thread.join(PATIENCE)

    def _go(self, call: Callable[[], Any] | None = None) -> None:
        with self._condition:
            self._call = call or self._call
            self.state = Is.RUNNING
            self._condition.notify_all()

    def has_stopped(self, seconds: float) -> bool:
        """Whether it has, within these."""
        with self._condition:
            return self._condition.wait_for(lambda: self.state in (Is.IDLE, Is.STOPPED), seconds)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self.state is Is.RUNNING)
            if self._over:
                connections.close_all()
                return
            try:
                self._connect()
                assert self._call is not None
                self.answer = self._call()
            except BaseException as error:  # noqa: BLE001  (whoever began it looks)
                self.error = error
            self._call = self._fate = None
            with self._condition:
                self.state = Is.IDLE
                self._condition.notify_all()

    def _connect(self) -> None:
        connection = connections[self.using]
        if self.pid:
            return
        connection.close()
        connection.ensure_connection()
        connection.connection.execute(UNHURRIED)
        self.pid = connection.connection.info.backend_pid
        connection.execute_wrappers[:] = [self._before]
        commit = type(connection)._commit
        connection._commit = lambda: self._committing(lambda: commit(connection))

    def _before(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        text = str(sql)
        if not text.startswith(QUIET):
            self._wrote = self._wrote or any(word in text for word in ("INSERT", "UPDATE", "DELETE", "FOR SHARE"))
            self._stop(text)
        if context["connection"].in_atomic_block:
            return execute(sql, params, many, context)
        return self._alone(lambda: execute(sql, params, many, context), context["connection"].connection)

    def _alone(self, execute: Callable[[], Any], raw: Any) -> Any:
        """A transaction by itself, taken apart: one that waited would else commit in the step of whoever it waits for,
        and nobody could say which of the two has done what."""
        raw.execute("BEGIN")
        try:
            answer = execute()
        except BaseException:
            self._wrote = False
            if not raw.closed:
                raw.execute("ROLLBACK")
            raise
        self._committing(lambda: raw.execute("COMMIT"))
        return answer

    def _committing(self, commit: Callable[[], Any]) -> None:
        if self._wrote:
            self._stop("COMMIT")
        commit()
        self._committed()

    def _committed(self) -> None:
        wrote, self._wrote = self._wrote, False
        self.commits += wrote
        if self._fate == "late":
            self._cut()

    def _stop(self, at: str) -> None:
        if not self._free:
            with self._condition:
                self.at, self.state = at, Is.STOPPED
                self._condition.notify_all()
                self._condition.wait_for(lambda: self.state is Is.RUNNING)
        if self._fate == "now":
            self._cut()

    def _cut(self) -> None:
        """The cable is cut; the server has rolled back what was open when this returns."""
        self._wrote = False
        self.dead = True
        connections[self.using].connection.close()
        with raw_connection() as watcher:
            while watcher.execute(GONE, [self.pid]).fetchall() != [(0,)]:
                threading.Event().wait(LOOK_AGAIN)
        self.pid = 0
        raise Killed


class Crew:
    """All sessions of a machine, and whoever sees which of them wait for which."""

    def __init__(self, using: Sequence[str]) -> None:
        self.sessions = [Session(alias) for alias in using]
        self.watcher = raw_connection()

    def drop(self) -> None:
        """Whatever somebody is in the middle of is cut, also after a machine that broke."""
        for session in self.sessions:
            if session.state is Is.BLOCKED:
                self.terminate(session)
        for session in self.sessions:
            if session.state is Is.STOPPED:
                session.kill()
                assert session.has_stopped(PATIENCE)

    def close(self) -> None:
        """The threads end, and the connections."""
        for session in self.sessions:
            session.close()
        self.watcher.close()

    def calm(self) -> None:
        """Returns when everybody has stopped, has nothing to do, or waits for a lock of somebody who has stopped.

        Raises BrokenPromise when some wait for each other.
        """
        busy = [session for session in self.sessions if session.state in (Is.RUNNING, Is.BLOCKED)]
        for _look in range(int(PATIENCE / LOOK_AGAIN)):
            busy = [session for session in busy if not session.has_stopped(LOOK_AGAIN if len(busy) == 1 else 0)]
            if not busy:
                return
            waits: dict[int, list[int]] = dict(self.watcher.execute(WAITS, [[s.pid for s in busy]]).fetchall())
            still = {s.pid for s in self.sessions if s.state is Is.STOPPED and s not in busy}
            for _turn in busy:
                still |= {pid for pid, on in waits.items() if on and still.issuperset(on)}
            if still.issuperset(s.pid for s in busy):
                for session in busy:
                    session.state = Is.BLOCKED
                return
            if self._ring(waits):
                raise BrokenPromise("two transactions lock each other out")
            threading.Event().wait(LOOK_AGAIN)
        raise AssertionError(f"it never stops: {[(s.state, s.at[:200]) for s in self.sessions]}")

    @staticmethod
    def _ring(waits: dict[int, list[int]]) -> bool:
        """Whether some wait for each other, whoever else waits."""
        left = {pid for pid, on in waits.items() if on}
        while goes := {pid for pid in left if not left.intersection(waits[pid])}:
            left -= goes
        return bool(left)

    def terminate(self, session: Session) -> None:
        """The end of one that waits for a lock."""
        session.dead = True
        self.watcher.execute("SELECT pg_terminate_backend(%s)", [session.pid])
        assert session.has_stopped(PATIENCE)
        session.pid = 0  # psycopg may not know as yet that nobody is there
