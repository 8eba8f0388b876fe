"""Is everything there that we stand on? A registry of probes; the answer comes in time even when they hang.

A probe is a function without arguments that returns when all is well and raises `Down` (or anything) when not. Each
runs in a thread of its own, at most once at a time; what has not answered by the deadline counts as down. `since` is
when this process first saw it so.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from django.db import connections
from django.utils.translation import gettext_noop

logger = logging.getLogger(__name__)

DEADLINE = 2.0
FRESH_FOR = 1.0
NO_ANSWER = gettext_noop("does not answer")
NOT_MIGRATED = gettext_noop("answers, but its tables are missing: run manage.py migrate")


class Down(Exception):
    """What a probe raises; the message is public, so it names no host, user or password."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one probe found. `detail` is a gettext message, empty when all is well; `latency` in seconds."""

    name: str
    ok: bool
    detail: str
    since: datetime
    latency: float | None

    @property
    def latency_ms(self) -> float:
        """The latency in milliseconds, 0 where there is none."""
        return (self.latency or 0) * 1000


class _Watched:
    """One probe: its last report, and the run that is under way."""

    def __init__(self, name: str, probe: Callable[[], None]) -> None:
        self.name = name
        self.probe = probe
        self.lock = threading.Lock()
        self.report: Report | None = None
        self.reported_at = 0.0
        self.running: threading.Event | None = None

    def _note(self, ok: bool, detail: str, latency: float | None) -> None:
        with self.lock:
            last = self.report
            since = last.since if last is not None and last.ok == ok else datetime.now(UTC)
            self.report = Report(self.name, ok, detail, since, latency)
            self.reported_at = time.monotonic()

    def _run(self, done: threading.Event) -> None:
        started = time.monotonic()
        try:
            self.probe()
        except Down as problem:
            self._note(False, str(problem), None)
        except Exception:
            if self.report is None or self.report.ok:
                logger.warning("health: %s is down", self.name, exc_info=True)
            self._note(False, NO_ANSWER, None)
        else:
            self._note(True, "", time.monotonic() - started)
        finally:
            with self.lock:
                self.running = None
            done.set()

    def begin(self) -> None:
        """Start a run, unless one is under way or its last report is fresh."""
        with self.lock:
            fresh = self.report is not None and time.monotonic() - self.reported_at < FRESH_FOR
            if fresh or self.running is not None:
                return
            done = self.running = threading.Event()
        threading.Thread(target=self._run, args=(done,), daemon=True, name=f"health-{self.name}").start()

    def answer(self, until: float) -> Report:
        """The report, waited for until that instant of the monotonic clock."""
        with self.lock:
            running = self.running
        if running is not None and not running.wait(max(0.0, until - time.monotonic())):
            self._note(False, NO_ANSWER, None)
        with self.lock:
            return self.report or Report(self.name, False, NO_ANSWER, datetime.now(UTC), None)

    def forget(self) -> None:
        with self.lock:
            self.report, self.reported_at = None, 0.0


_probes: dict[str, _Watched] = {}


def register(name: str, probe: Callable[[], None]) -> None:
    """Add a probe, or replace the one of that name."""
    _probes[name] = _Watched(name, probe)


def check_all(deadline: float = DEADLINE) -> list[Report]:
    """Ask every probe, all at once, and answer within `deadline` seconds. Never raises."""
    until = time.monotonic() + deadline
    watched = list(_probes.values())
    for one in watched:
        one.begin()
    return [one.answer(until) for one in watched]


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
