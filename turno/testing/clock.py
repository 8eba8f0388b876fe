"""Time in tests. Turno's time is the database's, so it is the database's clock that is moved: in the statements of one
connection, what asks for the instant is given the clock's.

Python's own clocks are left alone; a library for that can be used beside. What a column gets by its default keeps the
real instant: the entries of the time line, and when a dead letter was written.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from turno.testing.handed import instant_of, length_of, refuse_in_loop

_ASKED = re.compile(  # texts and names in quotes and remarks are met first, and stay
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*[\s\S]*?\*/)"""
    r"|(?<![\w.])(?:(?:now|statement_timestamp|transaction_timestamp|clock_timestamp)\(\)|current_timestamp\b)",
    re.IGNORECASE,
)
_REAL_NOW = "SELECT pg_catalog.statement_timestamp()"  # with its schema, which nobody else writes: it stays as it is


class Clock:
    """The database's clock, as the statements of one connection see it: it stands still until a test moves it.

    One that `runs` goes on by itself, and is only ahead of the real one by what it was moved.
    """

    def __init__(self, start: datetime | None, using: str, *, runs: bool = False) -> None:
        self._using = using
        self._ahead = timedelta()
        self._runs = runs
        self._instant = start or self._real_now()

    @property
    def now(self) -> datetime:
        """The instant, in UTC."""
        return (self._real_now() + self._ahead) if self._runs else self._instant

    def advance(self, seconds: timedelta | float = 0, **parts: float) -> datetime:
        """Let time pass: seconds, a timedelta, or the parts of one (`hours=1, minutes=30`). Gives the new instant.

        Nothing runs by it: what has become due runs in the next `drain()`.
        """
        return self.move_to(self.now + length_of("advance", length_of("seconds", seconds) + timedelta(**parts)))

    def move_to(self, instant: datetime | str) -> datetime:
        """Let time pass until an instant. Raises ValueError for one that is past: what was written then stays."""
        to, now = instant_of("instant", instant), self.now
        if to < now:
            raise ValueError(f"instant: expected none before {now.isoformat()}, got {to.isoformat()}")
        self._pass(now, to)
        return to

    def reach(self, instant: datetime) -> bool:
        """The same, but stay where it is past already; whether it was not."""
        now = self.now
        if instant > now:
            self._pass(now, instant)
        return instant > now

    def _pass(self, now: datetime, to: datetime) -> None:
        if self._runs:
            self._ahead += to - now
        self._instant = to

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: Any,
        params: Sequence[Any] | Mapping[str, Any] | None,
        many: bool,
        context: Mapping[str, Any],
    ) -> Any:
        """What Django calls in place of executing a statement."""
        if isinstance(sql, str):
            instant = self._expression()
            sql = _ASKED.sub(lambda found: found[1] or instant, sql)
        return execute(sql, params, many, context)

    def _expression(self) -> str:
        if self._runs:
            return f"(statement_timestamp() + interval '{self._ahead.total_seconds():.6f} seconds')"
        return f"(timestamptz '{self._instant.isoformat()}')"

    def _real_now(self) -> datetime:
        with connections[self._using].cursor() as cursor:
            cursor.execute(_REAL_NOW)
            found: datetime = cursor.fetchone()[0]
        return found.astimezone(UTC)


def clock_of(using: str) -> Clock | None:
    """The clock that holds for this thread's connection, or None where that is the database's own."""
    return next((wrapper for wrapper in connections[using].execute_wrappers if isinstance(wrapper, Clock)), None)


class frozen_time:  # noqa: N801  (it is used like a function)
    """`with frozen_time("2026-03-01T09:00:00Z") as clock:` the database's clock stands still, and `clock` moves it.

    Everything that Turno does meanwhile through this thread's connection happens at that instant: a job with a delay,
    a retry or a snooze becomes due when the clock has been moved there, and runs in the next `drain()`. `instant` is
    a datetime, or ISO 8601 text, with its offset; without one time stands still from now. In async tests write
    `async with`. Other connections, such as those of a worker process, keep the real time.

    Raises RuntimeError where time stands still already: move that clock; and, without `async`, inside an event loop,
    whose thread is not the one of Django's database calls.
    """

    def __init__(self, instant: datetime | str | None = None, *, using: str = "default") -> None:
        self._instant = None if instant is None else instant_of("instant", instant)
        self._using = using
        self._held = ExitStack()

    def __call__(self, *_given: Any) -> Any:
        """Raises TypeError: of a coroutine's time a decorator would hold nothing."""
        raise TypeError("frozen_time() is no decorator; write `with frozen_time(...)` inside of the test")

    def __enter__(self) -> Clock:
        refuse_in_loop("frozen_time()", "async with frozen_time(...)", "hold for no database call of an event loop")
        return self._enter()

    def _enter(self) -> Clock:
        if clock_of(self._using) is not None:
            raise RuntimeError("time stands still already; move the clock of the frozen_time() around this one")
        clock = Clock(self._instant, self._using)
        self._held.enter_context(connections[self._using].execute_wrapper(clock))
        return clock

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    async def __aenter__(self) -> Clock:
        return await sync_to_async(self._enter)()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await sync_to_async(self.__exit__)(kind, error, trace)


@contextmanager
def running_time(using: str) -> Iterator[Clock]:
    """The clock that holds already, else one that runs as the real one does, for as long as this is entered.

    In a transaction, too, where now() is when that began: what a test has just made due would not be due there.
    """
    clock = clock_of(using)
    if clock is not None:
        yield clock
        return
    clock = Clock(None, using, runs=True)
    with connections[using].execute_wrapper(clock):
        yield clock
