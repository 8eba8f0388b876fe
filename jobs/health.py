"""Is everything there that we stand on? A registry of probes; the answer comes in time even when they hang.

A probe is a function without arguments that returns when all is well and raises `Down` (or anything) when not. Each
runs in a thread of its own, at most once at a time; what has not answered by the deadline counts as down. `since` is
when this process first saw it so. Without what is `needed` nothing is answered; without the rest the API and the
screens go on, and say so.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

logger = logging.getLogger(__name__)

DEADLINE = 2.0
FRESH_FOR = 1.0
NO_ANSWER = gettext_noop("does not answer")
NOT_MIGRATED = gettext_noop("answers, but its tables are missing: run manage.py migrate")


class Down(Exception):
    """What a probe raises. Its gettext message and the `values` in it are public: no host, no user, no password.

    `where` is for people who are signed in: the servers meant, as host:port.
    """

    def __init__(self, message: str, *, where: Sequence[str] = (), **values: Any) -> None:
        super().__init__(message)
        self.values = values
        self.where = tuple(where)


@dataclass(frozen=True, slots=True)
class Report:
    """What one probe found. `detail` is a gettext message, empty when all is well, `values` stand in it, `where` as
    `Down` has it; `latency` in seconds."""

    name: str
    ok: bool
    detail: str
    since: datetime
    latency: float | None
    needed: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """What is wrong, in the language of whoever asks; empty when all is well."""
        if not self.detail:
            return ""
        return _(self.detail) % self.values if self.values else _(self.detail)

    @property
    def down_for(self) -> float:
        """How long it has been so, in seconds of this process's clock."""
        return max(0.0, (datetime.now(UTC) - self.since).total_seconds())


class _Watched:
    """One probe: its last report, and the run that is under way."""

    def __init__(self, name: str, probe: Callable[[], None], needed: bool, fresh_for: float) -> None:
        self.name = name
        self.probe = probe
        self.needed = needed
        self.fresh_for = fresh_for
        self.lock = threading.Lock()
        self.report: Report | None = None
        self.reported_at = 0.0
        self.running: threading.Event | None = None

    def _note(self, latency: float | None, down: Down | None = None) -> None:
        ok = down is None
        said = ("", {}, ()) if down is None else (str(down), down.values, down.where)
        with self.lock:
            last = self.report
            since = last.since if last is not None and last.ok == ok else datetime.now(UTC)
            self.report = Report(self.name, ok, said[0], since, latency, self.needed, said[1], said[2])
            self.reported_at = time.monotonic()

    def _run(self, done: threading.Event) -> None:
        started = time.monotonic()
        try:
            self.probe()
        except Down as problem:
            self._note(None, problem)
        except Exception:
            if self.report is None or self.report.ok:
                logger.warning("health: %s is down", self.name, exc_info=True)
            self._note(None, Down(NO_ANSWER))
        else:
            self._note(time.monotonic() - started)
        finally:
            with self.lock:
                self.running = None
            connections.close_all()  # this thread's own
            done.set()

    def begin(self) -> None:
        """Start a run, unless one is under way or its last report is fresh."""
        with self.lock:
            fresh = self.report is not None and time.monotonic() - self.reported_at < self.fresh_for
            if fresh or self.running is not None:
                return
            done = self.running = threading.Event()
        threading.Thread(target=self._run, args=(done,), daemon=True, name=f"health-{self.name}").start()

    def answer(self, until: float) -> Report:
        """The report, waited for until that instant of the monotonic clock."""
        with self.lock:
            running = self.running
        if running is not None and not running.wait(max(0.0, until - time.monotonic())):
            self._note(None, Down(NO_ANSWER))
        with self.lock:
            return self.report or Report(self.name, False, NO_ANSWER, datetime.now(UTC), None, self.needed)

    def last(self) -> Report | None:
        """The last report, however old; None before the first one."""
        with self.lock:
            return self.report

    def forget(self) -> None:
        with self.lock:
            self.report, self.reported_at = None, 0.0


_probes: dict[str, _Watched] = {}


def register(name: str, probe: Callable[[], None], *, needed: bool = True, fresh_for: float = FRESH_FOR) -> None:
    """Add a probe, or replace the one of that name; its report is good for `fresh_for` seconds."""
    _probes[name] = _Watched(name, probe, needed, fresh_for)


def check_all(deadline: float = DEADLINE, *, only_needed: bool = False) -> list[Report]:
    """Ask every probe (or those without which nothing is answered), all at once, and answer within `deadline` seconds.

    Never raises.
    """
    until = time.monotonic() + deadline
    watched = [one for one in _probes.values() if one.needed or not only_needed]
    for one in watched:
        one.begin()
    return [one.answer(until) for one in watched]


def latest() -> list[Report]:
    """What is known of that without which one goes on, asked anew in the background: waits for nothing, never raises.

    What was never asked before is missing; what hangs is as it was.
    """
    watched = [one for one in _probes.values() if not one.needed]
    for one in watched:
        one.begin()
    return [report for one in watched if (report := one.last()) is not None]


def forget() -> None:
    """Ask anew at the next check: for tests, and after a repair."""
    for watched in _probes.values():
        watched.forget()


def postgresql() -> None:
    """PostgreSQL answers on a connection of its own, and our tables are there. Raises Down or the driver's error."""
    params = connections["default"].get_connection_params()
    params.pop("pool", None)
    params |= {"connect_timeout": 2, "tcp_user_timeout": 2000}
    with psycopg.connect(**params, autocommit=True) as connection:
        row = connection.execute("SELECT to_regclass('turno.jobs') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        raise Down(NOT_MIGRATED)


register("postgresql", postgresql)
