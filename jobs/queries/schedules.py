"""Recurring jobs with all that is known of them: the last run, what of it is active, what comes next.

However many, it is one statement. Instants that people's SQL wrote beyond any calendar are none.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.cron import BadCron, Schedule, describe, parse
from jobs.queries.schedulelist import SANE, Sourced

ACTIVE_MOST = 1000
DAY = timedelta(days=1)
NEXT, LAST_RUN, LAST_SKIPPED = (
    f"CASE WHEN s.{column} {SANE} THEN s.{column} END" for column in ("next_run_at", "last_run_at", "last_skipped_at")
)
# What has ended of one, the newest first, with its last execution: a job that has ended knows no more when it began.
RUNS = """
    SELECT j.id, j.state, x.started_at, j.finished_at, j.fired_for, x.duration FROM turno.jobs AS j
    LEFT JOIN LATERAL (
        SELECT a.started_at, a.duration FROM turno.job_attempts AS a
        WHERE a.job_id = j.id ORDER BY a.ordinal DESC LIMIT 1
    ) AS x ON true
    WHERE j.recurring_job_id = {of} AND j.state IN ('Succeeded', 'Failed', 'Cancelled')
    ORDER BY j.id DESC LIMIT {limit}
"""
COLUMNS = f"""
    s.id, s.name, s.type, s.queue, s.priority, s.cron, s.timezone, s.enabled, s.overlap, s.misfire, s.source, s.error,
    s.version, {NEXT}, {LAST_RUN}, s.skipped, {LAST_SKIPPED}, s.last_skipped_why, s.disabled_by, s.owner,
    s.created_at, s.updated_at, now(), GREATEST(0, extract(epoch FROM {NEXT} - now()))::float8,
    GREATEST(0, extract(epoch FROM now() - ended.finished_at))::float8, going.jobs, going.first,
    ended.id, ended.state, ended.started_at, ended.finished_at, ended.fired_for, ended.duration, s.payload::text"""
BESIDE = f"""
LEFT JOIN LATERAL ({RUNS.format(of="s.id", limit=1)}) AS ended ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, (array_agg(a.id))[1] AS first FROM (
        SELECT id FROM turno.jobs
        WHERE recurring_job_id = s.id AND state IN ('Enqueued', 'Processing', 'Scheduled') LIMIT {ACTIVE_MOST}
    ) AS a
) AS going"""
LAST = RUNS.format(of="%(id)s::uuid", limit="%(limit)s")
ROWS = f"SELECT {COLUMNS} FROM turno.recurring_jobs AS s {BESIDE} WHERE s.id = ANY(%(ids)s::uuid[])"
ONE = f"SELECT {COLUMNS} FROM turno.recurring_jobs AS s {BESIDE} WHERE s.id = %(id)s::uuid"


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run that has ended. `started_at`, `seconds`: of its last execution; None when it never started, `seconds` also
    when nobody was left to measure them."""

    job_id: UUID
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    fired_for: datetime
    seconds: float | None


@dataclass(frozen=True, slots=True)
class ScheduleRow(Sourced):
    """A recurring job. `due_in` and `finished_ago` (of `last`) in seconds at `as_of`; `active`: jobs of it that are not
    final, counted up to 1,000, and `running` one of them.

    `disabled_by` "configuration" means that its file does not declare it any more.
    """

    id: UUID
    name: str
    type: str
    queue: str | None
    priority: int | None
    cron: str
    timezone: str
    enabled: bool
    overlap: str
    misfire: str
    source: str
    error: str | None
    version: int
    next_run_at: datetime | None
    last_run_at: datetime | None
    skipped: int
    last_skipped_at: datetime | None
    last_skipped_why: str | None
    disabled_by: str | None
    owner: str | None
    created_at: datetime
    updated_at: datetime
    as_of: datetime
    due_in: float | None
    finished_ago: float | None
    active: int
    running: UUID | None
    last: LastRun | None
    payload: Any

    @property
    def parsed(self) -> Schedule | None:
        """The schedule that its texts mean; None for texts that mean none."""
        try:
            return parse(self.cron, self.timezone)
        except BadCron:
            return None

    @property
    def state(self) -> str:
        """ "disabled", "error" (it can't fire until somebody edits it) or "enabled"."""
        if not self.enabled:
            return "disabled"
        return "error" if self.error is not None else "enabled"

    @property
    def words(self) -> str | None:
        """When it runs, in the active language."""
        return None if (schedule := self.parsed) is None else describe(schedule)

    @property
    def times_a_day(self) -> int | None:
        """How often it runs in the 24 hours from `as_of`; None where its texts mean no schedule."""
        if self.state != "enabled":
            return 0
        return None if (schedule := self.parsed) is None else schedule.count(self.as_of, self.as_of + DAY)

    def upcoming(self, count: int = 5) -> list[datetime]:
        """Its next instants; none while it does not fire."""
        schedule = self.parsed
        return [] if schedule is None or self.state != "enabled" else schedule.upcoming(self.as_of, count)


def _fetch(sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def _rows(sql: str, params: dict[str, Any]) -> list[ScheduleRow]:
    found = []
    for *columns, job, state, started, finished, fired, seconds, payload in _fetch(sql, params):
        last = None if job is None else LastRun(job, state, started, finished, fired, seconds)
        found.append(ScheduleRow(*[*columns, last, _read(payload)]))
    return found


def _read(payload: str) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):  # people's SQL: a number of thousands of digits, say
        return None


def schedules(ids: Sequence[UUID]) -> list[ScheduleRow]:
    """Those of these ids, in their order, without those that are gone."""
    found = {row.id: row for row in _rows(ROWS, {"ids": list(ids)})} if ids else {}
    return [found[id_] for id_ in ids if id_ in found]


def schedule(id_: UUID) -> ScheduleRow | None:
    """One, with its payload; None when there is none."""
    return next(iter(_rows(ONE, {"id": id_})), None)


def ended(id_: UUID, limit: int = 10) -> list[LastRun]:
    """The last runs of one that have ended and are kept, newest first."""
    return [LastRun(*row) for row in _fetch(LAST, {"id": id_, "limit": limit})]
