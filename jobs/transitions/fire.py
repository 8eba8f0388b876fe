"""Recurring jobs that are due: what they are when it is read, and their jobs with the next instant in one transaction.

Between the two a leader may freeze or die, and another one fire the same: `version` grows at each write of a row, so
the write of what was read before is void. What is fired twice all the same meets the job of that instant, and adds
none.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.transitions.insert import NewJob, insert_new
from jobs.transitions.sql import arrays, fetch, in_transaction, unnest

# An instant of before there were any is people's SQL, and maybe none that Python has. Whoever is firing a row has it
# locked: the batch is filled from behind it.
DUE = """
SELECT id, version, name, type, queue, priority, payload::text, cron, timezone, overlap, misfire, owner,
    GREATEST(next_run_at, timestamptz '2000-01-01 00:00Z'), now()
FROM turno.recurring_jobs
WHERE enabled AND next_run_at <= now() AND id <> ALL (%(without)s::uuid[])
ORDER BY next_run_at LIMIT %(limit)s FOR SHARE SKIP LOCKED
"""
TAKEN = {"id": "uuid", "version": "bigint", "next_run_at": "timestamptz", "error": "text", "missed": "int"}
TAKE = f"""
WITH given AS MATERIALIZED (SELECT * FROM {unnest("g", TAKEN)}),
mine AS MATERIALIZED (
    SELECT r.id FROM turno.recurring_jobs AS r JOIN given AS g ON g.id = r.id
    WHERE r.version = g.version AND r.enabled ORDER BY r.id FOR NO KEY UPDATE OF r SKIP LOCKED
)
UPDATE turno.recurring_jobs AS r
SET next_run_at = g.next_run_at, error = g.error, version = r.version + 1,
    skipped = LEAST(r.skipped::bigint + g.missed, 2147483647)::int,
    last_skipped_at = CASE WHEN g.missed > 0 THEN now() ELSE r.last_skipped_at END,
    last_skipped_why = CASE WHEN g.missed > 0 THEN 'misfire' ELSE r.last_skipped_why END
FROM given AS g
WHERE r.id = g.id AND r.id = ANY (ARRAY(SELECT id FROM mine)) AND r.version = g.version AND r.enabled
  AND now() <= %(as_of)s::timestamptz + %(fresh)s::float8 * interval '1 second'
RETURNING r.id
"""
# Of each, one that is not final.
ACTIVE = """
SELECT s.id, a.id, a.state FROM unnest(%(ids)s::uuid[]) AS s(id) CROSS JOIN LATERAL (
    SELECT id, state FROM turno.jobs
    WHERE recurring_job_id = s.id AND state IN ('Enqueued', 'Processing', 'Scheduled') LIMIT 1
) AS a
"""
TOLD = {"id": "uuid", "job": "uuid", "instant": "timestamptz", "left_out": "int"}
# The rows are ours until the commit: TAKE, or LOCK, has locked them.
TELL = f"""
UPDATE turno.recurring_jobs AS r
SET last_job_id = COALESCE(g.job, r.last_job_id), last_run_at = COALESCE(g.instant, r.last_run_at),
    skipped = LEAST(r.skipped::bigint + g.left_out, 2147483647)::int,
    last_skipped_at = CASE WHEN g.left_out > 0 THEN now() ELSE r.last_skipped_at END,
    last_skipped_why = CASE WHEN g.left_out > 0 THEN 'overlap' ELSE r.last_skipped_why END
FROM {unnest("g", TOLD)} WHERE r.id = g.id
"""
LOCK = """
SELECT GREATEST(statement_timestamp(), (
    SELECT max(fired_for) + interval '1 microsecond' FROM turno.jobs WHERE recurring_job_id = %(id)s::uuid
)) FROM turno.recurring_jobs WHERE id = %(id)s::uuid AND version = %(version)s FOR NO KEY UPDATE
"""
# What is beyond the hour is of no interest, and maybe no instant that could be subtracted.
NEXT = """
SELECT GREATEST(0, extract(epoch FROM GREATEST(next_run_at, timestamptz '2000-01-01 00:00Z') - now()))::float8
FROM turno.recurring_jobs
WHERE enabled AND next_run_at < now() + interval '1 hour' AND id <> ALL (%(without)s::uuid[])
ORDER BY next_run_at LIMIT 1
"""
SERVED = """
SELECT name FROM turno.job_types
WHERE name = ANY(%(names)s::text[]) AND last_served_at > now() - %(age)s::float8 * interval '1 second'
"""


class Due(NamedTuple):
    """A recurring job as it was read at `now`, by the database's clock. `payload` is JSON text; `instant`: the one that
    it is due for."""

    id: UUID
    version: int
    name: str
    type: str
    queue: str | None
    priority: int | None
    payload: str
    cron: str
    timezone: str
    overlap: str
    misfire: str
    owner: str | None
    instant: datetime
    now: datetime


class Firing(NamedTuple):
    """What becomes of a due one: its next instant, or the `error` for which it has none; `missed`: how many instants
    are left out as too late; `jobs`: those that it fires, the oldest first."""

    due: Due
    next: datetime | None
    error: str | None = None
    missed: int = 0
    jobs: tuple[NewJob, ...] = ()


class Active(NamedTuple):
    """A job of a recurring one that is not final."""

    id: UUID
    state: str


def due(*, limit: int, without: Collection[UUID] = (), using: str = "default") -> list[Due]:
    """Recurring jobs whose instant has come, the oldest instant first, but those that somebody is firing just now."""
    params = {"limit": limit, "without": list(without)}
    return in_transaction(using, lambda cursor: [Due(*row) for row in fetch(cursor, DUE, params)])


def fire(firings: Sequence[Firing], *, fresh: float, using: str = "default") -> dict[UUID, int]:
    """Give each its next instant and insert its jobs, for those that are as they were read; how many jobs of each.

    What was read more than `fresh` seconds ago counts no more: whoever was frozen for so long reads again. A job whose
    recurring one skips overlaps is left out, and counted, while another one of it is not final.
    """
    if not firings:
        return {}
    rows = [(f.due.id, f.due.version, f.next, f.error, f.missed) for f in firings]
    params = arrays(TAKEN, rows) | {"as_of": min(f.due.now for f in firings), "fresh": fresh}

    def work(cursor: CursorWrapper) -> dict[UUID, int]:
        taken = {id_ for (id_,) in fetch(cursor, TAKE, params)}
        return _insert(cursor, [f for f in firings if f.due.id in taken])

    return in_transaction(using, work)


def _insert(cursor: CursorWrapper, firings: Sequence[Firing]) -> dict[UUID, int]:
    wary = [f.due.id for f in firings if f.jobs and f.due.overlap == "skip"]
    busy = active(cursor, wary)
    rows = [job for f in firings if f.due.id not in busy for job in f.jobs]
    placed = insert_new(cursor, rows) if rows else {}
    told = []
    fired = {f.due.id: 0 for f in firings}
    for f in firings:
        mine = [job for job in f.jobs if job.id in placed]
        fired[f.due.id] = len(mine)
        overlaps = len(f.jobs) if f.due.id in busy else 0
        if mine or overlaps:
            told.append((f.due.id, mine[-1].id if mine else None, mine[-1].fired_for if mine else None, overlaps))
    if told:
        cursor.execute(TELL, arrays(TOLD, told))
    return fired


def active(cursor: CursorWrapper, ids: Sequence[UUID]) -> dict[UUID, Active]:
    """Of these recurring jobs, those with a job that is not final, and which."""
    return {id_: Active(*job) for id_, *job in fetch(cursor, ACTIVE, {"ids": list(ids)})} if ids else {}


def trigger(read: Due, job: NewJob, *, using: str = "default") -> NewJob | Active | None:
    """Insert one more job of a recurring one, fired for the database's now; its schedule stays as it is.

    Gives what was inserted, or the job that is still active where overlaps are skipped; None when the row is not as it
    was read.
    """

    def work(cursor: CursorWrapper) -> NewJob | Active | None:
        rows = fetch(cursor, LOCK, {"id": read.id, "version": read.version})
        if not rows:
            return None
        if read.overlap == "skip" and (found := active(cursor, [read.id]).get(read.id)) is not None:
            return found
        made = job._replace(fired_for=rows[0][0])
        if not insert_new(cursor, [made]):
            return None
        cursor.execute(TELL, arrays(TOLD, [(read.id, made.id, made.fired_for, 0)]))
        return made

    return in_transaction(using, work)


def next_firing(*, without: Collection[UUID] = (), using: str = "default") -> float | None:
    """Seconds until the next recurring job but those `without` is due (0 when one is); None: none within the hour."""
    rows = in_transaction(using, lambda cursor: fetch(cursor, NEXT, {"without": list(without)}))
    return rows[0][0] if rows else None


def served_types(names: Collection[str], *, age: float, using: str = "default") -> set[str]:
    """Of these types, those that a worker had within `age` seconds."""
    params = {"names": list(names), "age": float(age)}
    return {name for (name,) in in_transaction(using, lambda cursor: fetch(cursor, SERVED, params))}
