"""The rows of recurring jobs: read, written, deleted. Each write makes another version, and wakes who fires."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.bounds import KEY_LENGTH
from jobs.ids import new_id
from jobs.queries.schedulelist import UNDECLARED, Sourced
from jobs.schedules.fields import Checked
from jobs.text import clean
from jobs.transitions import DUE
from jobs.transitions.sql import fetch, notify

# People's SQL may have written any next instant: one that no schedule has is none.
COLUMNS = """id, version, name, type, queue, priority, payload::text AS payload, cron, timezone, overlap, misfire,
    enabled, source, error, disabled_by, owner, updated_at,
    COALESCE(next_run_at < now() + interval '60 years', false) AS placed"""
BY_ID = f"SELECT {COLUMNS}, now() FROM turno.recurring_jobs WHERE id = %(id)s::uuid FOR NO KEY UPDATE"
BY_NAME = f"SELECT {COLUMNS}, now() FROM turno.recurring_jobs WHERE name = %(name)s FOR NO KEY UPDATE"
ALL = f"""
SELECT {COLUMNS}, now() FROM turno.recurring_jobs
WHERE source = 'declared' OR name = ANY(%(names)s::text[]) ORDER BY id FOR NO KEY UPDATE
"""
ASTRAY = f"""
SELECT {COLUMNS}, now() FROM turno.recurring_jobs
WHERE enabled AND error IS NULL AND (next_run_at IS NULL OR next_run_at >= now() + interval '60 years')
ORDER BY id LIMIT 200 FOR NO KEY UPDATE SKIP LOCKED
"""
NOW = "SELECT now()"
INSERT = """
INSERT INTO turno.recurring_jobs (
    id, name, type, queue, priority, payload, cron, timezone, overlap, misfire, enabled, next_run_at, source,
    disabled_by, owner, version
) VALUES (
    %(id)s::uuid, %(name)s, %(type)s, %(queue)s, %(priority)s, %(payload)s::jsonb, %(cron)s, %(timezone)s, %(overlap)s,
    %(misfire)s, %(enabled)s, %(next_run_at)s, %(source)s, %(disabled_by)s, %(owner)s, 1
) ON CONFLICT (name) DO NOTHING RETURNING id
"""
# A schedule that stays keeps its instant, also one that is due just now. Whoever edits clears the error.
UPDATE = """
UPDATE turno.recurring_jobs
SET name = %(name)s, type = %(type)s, queue = %(queue)s, priority = %(priority)s, payload = %(payload)s::jsonb,
    cron = %(cron)s, timezone = %(timezone)s, overlap = %(overlap)s, misfire = %(misfire)s, enabled = %(enabled)s,
    next_run_at = CASE WHEN %(keep)s THEN next_run_at ELSE %(next_run_at)s END, error = NULL, source = %(source)s,
    disabled_by = %(disabled_by)s, version = version + 1, updated_at = now()
WHERE id = %(id)s::uuid
"""
SWITCH = """
UPDATE turno.recurring_jobs
SET enabled = %(enabled)s, next_run_at = %(next_run_at)s, error = CASE WHEN %(enabled)s THEN NULL ELSE error END,
    disabled_by = %(disabled_by)s, version = version + 1, updated_at = now()
WHERE id = %(id)s::uuid
"""
PLACE = """
UPDATE turno.recurring_jobs SET next_run_at = %(next_run_at)s, error = %(error)s, version = version + 1
WHERE id = %(id)s::uuid
"""
DROP = """
UPDATE turno.recurring_jobs
SET enabled = false, next_run_at = NULL, disabled_by = %(by)s, version = version + 1, updated_at = now()
WHERE id = %(id)s::uuid
"""
DELETE = "DELETE FROM turno.recurring_jobs WHERE id = %(id)s::uuid"


@dataclass(frozen=True, slots=True)
class Row(Sourced):
    """A recurring job, locked, as it is at `now`, by the database's clock. `payload` is JSON text; `placed`: it has a
    next instant."""

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
    enabled: bool
    source: str
    error: str | None
    disabled_by: str | None
    owner: str | None
    updated_at: datetime
    placed: bool
    now: datetime


def by_id(cursor: CursorWrapper, id_: UUID) -> Row | None:
    """Lock one."""
    return next((Row(*row) for row in fetch(cursor, BY_ID, {"id": id_})), None)


def by_name(cursor: CursorWrapper, name: str) -> Row | None:
    """Lock the one of a name."""
    return next((Row(*row) for row in fetch(cursor, BY_NAME, {"name": name})), None)


def astray(cursor: CursorWrapper) -> list[Row]:
    """Lock those that are enabled and would never fire, though nothing is known to be wrong with them."""
    return [Row(*row) for row in fetch(cursor, ASTRAY, {})]


def declared_or_named(cursor: CursorWrapper, names: list[str]) -> list[Row]:
    """Lock those that were declared, and those of these names."""
    return [Row(*row) for row in fetch(cursor, ALL, {"names": names})]


def now(cursor: CursorWrapper) -> datetime:
    """The database's clock."""
    found: datetime = fetch(cursor, NOW, {})[0][0]
    return found


def _columns(checked: Checked) -> dict[str, Any]:
    wanted = checked.wanted
    return {
        "name": wanted.name,
        "type": wanted.type,
        "queue": wanted.queue,
        "priority": wanted.priority,
        "payload": checked.payload,
        "cron": checked.schedule.text,
        "timezone": checked.schedule.timezone,
        "overlap": wanted.overlap,
        "misfire": wanted.misfire,
    }


def insert(
    cursor: CursorWrapper,
    checked: Checked,
    *,
    enabled: bool,
    source: str = "manual",
    by: str | None = None,
    owner: str | None = None,
) -> UUID | None:
    """A new row, `by` whom it is disabled where it is; None when the name is taken."""
    next_run_at = checked.schedule.next(now(cursor)) if enabled else None
    rest: dict[str, Any] = {
        "id": new_id(),
        "enabled": enabled,
        "next_run_at": next_run_at,
        "source": source,
        "disabled_by": None if enabled else _who(by),
        "owner": _who(owner),
    }
    rows = fetch(cursor, INSERT, _columns(checked) | rest)
    _told(cursor, next_run_at)
    return rows[0][0] if rows else None


def update(
    cursor: CursorWrapper, row: Row, checked: Checked, *, enabled: bool, source: str = "manual", by: str | None = None
) -> None:
    """Write what `row` should be, and clear its error."""
    schedule = checked.schedule
    same = (row.cron, row.timezone) == (schedule.text, schedule.timezone)
    keep = same and enabled and row.enabled and row.error is None and row.placed
    next_run_at = schedule.next(row.now) if enabled and not keep else None
    disabled_by = None if enabled else row.disabled_by if not row.enabled and by is None else _who(by)
    rest: dict[str, Any] = {
        "id": row.id,
        "enabled": enabled,
        "keep": keep,
        "next_run_at": next_run_at,
        "source": source,
        "disabled_by": disabled_by,
    }
    cursor.execute(UPDATE, _columns(checked) | rest)
    _told(cursor, next_run_at)


def switch(cursor: CursorWrapper, row: Row, next_run_at: datetime | None, *, by: str | None = None) -> None:
    """Enable it with its next instant, or disable it (None)."""
    disabled_by = _who(by) if next_run_at is None else None
    values = {"id": row.id, "enabled": next_run_at is not None, "next_run_at": next_run_at, "disabled_by": disabled_by}
    cursor.execute(SWITCH, values)
    _told(cursor, next_run_at)


def place(cursor: CursorWrapper, row: Row, next_run_at: datetime | None, error: str | None = None) -> None:
    """Give it its next instant, or the error for which it has none; that is nobody's edit."""
    cursor.execute(PLACE, {"id": row.id, "next_run_at": next_run_at, "error": error})
    _told(cursor, next_run_at)


def drop(cursor: CursorWrapper, row: Row) -> None:
    """Disable one that its file does not declare any more; who had disabled it before is kept."""
    by = UNDECLARED if row.enabled else f"{UNDECLARED}:{row.disabled_by or ''}"
    cursor.execute(DROP, {"id": row.id, "by": by})


def delete(cursor: CursorWrapper, id_: UUID) -> bool:
    """Remove it; the jobs that it made stay."""
    cursor.execute(DELETE, {"id": id_})
    return bool(cursor.rowcount)


def _who(actor: str | None) -> str | None:
    return None if actor is None else clean(actor, KEY_LENGTH, one_line=True)


def _told(cursor: CursorWrapper, next_run_at: datetime | None) -> None:
    if next_run_at is not None:
        notify(cursor, DUE, [""])
