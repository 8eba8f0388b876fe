"""The recurring jobs as their screen lists them: the next one first, each with what its last run came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.db import connections

from jobs.states import FINAL, State
from jobs.text import clean

PAGE = 50
MOST_IDS = 200
RUNS = 10
RUN_COLUMNS = 5  # the last ones of LIST
LONGEST_NAME = 200
UNDECLARED = "configuration"  # who has disabled one that the configuration has dropped; who had before, after a colon
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# An instant that Python has no datetime for, which people's SQL may have written, is none.
SANE = "BETWEEN '1970-01-02Z' AND '9999-12-30Z'"
# When it fires next: nothing that is disabled, or can't fire, is due.
DUE = f"CASE WHEN r.enabled AND r.error IS NULL AND r.next_run_at {SANE} THEN r.next_run_at END"
RAN = f"CASE WHEN r.last_run_at {SANE} THEN r.last_run_at END"
SKIPPED = f"CASE WHEN r.last_skipped_at {SANE} THEN r.last_skipped_at END"
FAILING = "(r.error IS NOT NULL OR j.state = 'Failed')"
SHOWN = {"": "true", "enabled": "r.enabled", "failing": FAILING}
MATCHES = """(%(text)s::text IS NULL OR position(%(text)s::text IN lower(r.name)) > 0
    OR position(%(text)s::text IN r.type) > 0)"""
LIST = f"""
SELECT r.id, r.name, r.type, r.queue, r.cron, r.timezone, r.enabled, {DUE},
    r.overlap, r.misfire, r.source, r.error, r.version, r.disabled_by, {RAN}, r.skipped, {SKIPPED},
    r.last_skipped_why, j.id, j.state, j.run_at IS NULL, j.finished_at,
    CASE WHEN j.finished_at IS NULL THEN extract(epoch FROM now() - j.started_at)::float8 ELSE ended.duration END
FROM turno.recurring_jobs AS r
LEFT JOIN turno.jobs AS j ON j.id = r.last_job_id
LEFT JOIN LATERAL (
    SELECT duration FROM turno.job_attempts WHERE job_id = j.id ORDER BY ordinal DESC LIMIT 1
) AS ended ON j.finished_at IS NOT NULL
"""
FOUND = """
WHERE {shown} AND {matches}
  AND (%(name)s::text IS NULL
       OR (COALESCE({due}, 'infinity'), r.name) > (COALESCE(%(due)s::timestamptz, 'infinity'), %(name)s::text))
ORDER BY COALESCE({due}, 'infinity'), r.name LIMIT %(limit)s
"""
PAGES = {name: LIST + FOUND.format(shown=shown, matches=MATCHES, due=DUE) for name, shown in SHOWN.items()}
BY_ID = LIST + "WHERE r.id = ANY(%(ids)s::uuid[])"
COUNTS = f"""
SELECT count(*) FILTER (WHERE r.enabled), count(*) FILTER (WHERE NOT r.enabled), count(*) FILTER (WHERE {FAILING})
FROM turno.recurring_jobs AS r LEFT JOIN turno.jobs AS j ON j.id = r.last_job_id
"""
NEWER = {
    name: f"""
    SELECT count(*) FROM turno.recurring_jobs AS r LEFT JOIN turno.jobs AS j ON j.id = r.last_job_id
    WHERE r.created_at > %(since)s AND {shown} AND {MATCHES} AND NOT r.id = ANY(%(ids)s::uuid[])
    """
    for name, shown in SHOWN.items()
}
LAST_RUNS = """
SELECT id, state, fired_for, finished_at FROM turno.jobs
WHERE recurring_job_id = %(id)s ORDER BY id DESC LIMIT %(limit)s
"""
SAME_MINUTE = """
SELECT count(*) FROM turno.recurring_jobs
WHERE enabled AND error IS NULL AND next_run_at >= %(start)s AND next_run_at < %(end)s
  AND (%(without)s::uuid IS NULL OR id <> %(without)s::uuid)
"""


class Sourced:
    """What follows from where a row comes from."""

    __slots__ = ()
    source: str
    disabled_by: str | None

    @property
    def undeclared(self) -> bool:
        """The configuration does not declare it any more: whoever edits it takes it over."""
        return self.source == "declared" and (self.disabled_by or "").partition(":")[0] == UNDECLARED

    @property
    def declared(self) -> bool:
        """Its schedule follows the configuration."""
        return self.source == "declared" and not self.undeclared


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Which recurring jobs. `text` stands in the name or the type; `shown`: "" all, "enabled", or "failing": those
    that can't fire, and those whose last run failed."""

    text: str | None = None
    shown: str = ""

    def params(self) -> dict[str, Any]:
        """As the statements name them."""
        return {"text": self.text.lower() if self.text else None}


@dataclass(frozen=True, slots=True)
class ScheduleCursor:
    """The last one of a page: when it was due (None: never), and its name."""

    due: datetime | None
    name: str

    def __str__(self) -> str:
        at = "" if self.due is None else str((self.due - EPOCH) // timedelta(microseconds=1))
        return f"{at}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The cursor that `str()` wrote. Raises ValueError for anything else."""
        at, dot, name = text.partition(".")
        if not dot or not name or name != clean(name, LONGEST_NAME) or len(at) > 17:
            raise ValueError("not a cursor")
        if not at:
            return cls(None, name)
        if not (at.isascii() and at.isdigit()):
            raise ValueError("not a cursor")
        try:
            return cls(EPOCH + timedelta(microseconds=int(at)), name)
        except OverflowError as error:
            raise ValueError("not a cursor") from error


@dataclass(frozen=True, slots=True)
class Run:
    """What a recurring job's last run came to; `seconds`: so far while it runs, those of its last execution when it has
    ended, None when it never began."""

    id: UUID
    state: str
    parked: bool
    finished_at: datetime | None
    seconds: float | None

    @property
    def final(self) -> bool:
        """It has ended."""
        return State(self.state) in FINAL


@dataclass(frozen=True, slots=True)
class ScheduleRow(Sourced):
    """A recurring job. `due`: when it fires next, None where it does not; `last`: None where no run is kept."""

    id: UUID
    name: str
    type: str
    queue: str | None
    cron: str
    timezone: str
    enabled: bool
    due: datetime | None
    overlap: str
    misfire: str
    source: str
    error: str | None
    version: int
    disabled_by: str | None
    last_run_at: datetime | None
    skipped: int
    last_skipped_at: datetime | None
    last_skipped_why: str | None
    last: Run | None

    @property
    def cursor(self) -> ScheduleCursor:
        """Where the page after it begins."""
        return ScheduleCursor(self.due, self.name)


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Rows of a list; `after`: where the following page begins, None at the end."""

    rows: list[ScheduleRow]
    after: ScheduleCursor | None


@dataclass(frozen=True, slots=True)
class ScheduleCounts:
    """How many there are."""

    enabled: int
    disabled: int
    failing: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.enabled + self.disabled


@dataclass(frozen=True, slots=True)
class PastRun:
    """One of the last runs."""

    id: UUID
    state: str
    fired_for: datetime
    finished_at: datetime | None


def _rows(statement: str, params: dict[str, Any]) -> list[ScheduleRow]:
    with connections["default"].cursor() as cursor:
        cursor.execute(statement, params)
        found = cursor.fetchall()
    made = []
    for row in found:
        columns, last = row[:-RUN_COLUMNS], row[-RUN_COLUMNS:]
        made.append(ScheduleRow(*(*columns, Run(*last) if last[0] is not None else None)))
    return made


def schedule_list(wanted: ScheduleFilter, after: ScheduleCursor | None = None, *, size: int = PAGE) -> SchedulePage:
    """A page, the next to fire first; those that do not fire come last, by name."""
    at = {"name": after.name if after else None, "due": after.due if after else None}
    found = _rows(PAGES[wanted.shown], wanted.params() | at | {"limit": size + 1})
    return SchedulePage(found[:size], found[size - 1].cursor if len(found) > size else None)


def schedule_rows(ids: Sequence[UUID]) -> list[ScheduleRow]:
    """Those with these ids (at most 200) that are still there, in that order."""
    wanted = list(ids)[:MOST_IDS]
    found = {row.id: row for row in _rows(BY_ID, {"ids": wanted})}
    return [found[id_] for id_ in wanted if id_ in found]


def schedule_counts() -> ScheduleCounts:
    """How many are enabled, disabled, failing."""
    with connections["default"].cursor() as cursor:
        cursor.execute(COUNTS)
        return ScheduleCounts(*cursor.fetchone())


def newer_schedules(wanted: ScheduleFilter, since: datetime, seen: Sequence[UUID]) -> int:
    """How many that match were made after `since` and are not among those seen."""
    with connections["default"].cursor() as cursor:
        cursor.execute(NEWER[wanted.shown], wanted.params() | {"since": since, "ids": list(seen)[:MOST_IDS]})
        number: int = cursor.fetchone()[0]
        return number


def last_runs(id_: UUID, limit: int = RUNS) -> list[PastRun]:
    """The last runs of one that are kept, newest first."""
    with connections["default"].cursor() as cursor:
        cursor.execute(LAST_RUNS, {"id": id_, "limit": limit})
        return [PastRun(*row) for row in cursor.fetchall()]


def same_minute(instant: datetime, without: UUID | None = None) -> int:
    """How many (others than `without`) fire next in the minute of `instant`."""
    start = instant.replace(second=0, microsecond=0)
    params = {"start": start, "end": start + timedelta(minutes=1), "without": without}
    with connections["default"].cursor() as cursor:
        cursor.execute(SAME_MINUTE, params)
        number: int = cursor.fetchone()[0]
        return number
