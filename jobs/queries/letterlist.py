"""Pages of dead letters over all causes, newest first. A page looks at so many of them and no more."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.queries.letterfilter import MATCHES, LetterFilter
from jobs.queries.letters import LetterCursor

LOOKED_AT = 10_000
# Walked by age, or by cause where one is named: those that wait and those dealt with have an index each, which is why
# the cause stands in both branches. What the filter asks besides is looked at row by row.
KEYS = f"""
WITH looked AS (
    SELECT d.id, d.type, d.queue, d.fingerprint, d.error_type, d.error_message, d.created_at
    FROM turno.dead_letters AS d
    WHERE (
        (%(pending)s::boolean IS NOT FALSE AND d.resolved_at IS NULL
            AND (%(fingerprint)s::text IS NULL OR d.fingerprint = %(fingerprint)s::text))
        OR (%(pending)s::boolean IS NOT TRUE AND d.resolved_at IS NOT NULL
            AND d.resolved_how IN ('requeued', 'discarded')
            AND (%(fingerprint)s::text IS NULL OR d.fingerprint = %(fingerprint)s::text))
      ) AND (%(at)s::timestamptz IS NULL OR (d.created_at, d.id) < (%(at)s::timestamptz, %(id)s::uuid))
    ORDER BY d.created_at DESC, d.id DESC LIMIT %(looked)s
), kept AS (
    SELECT d.id, d.created_at FROM looked AS d WHERE {MATCHES}
    ORDER BY d.created_at DESC, d.id DESC LIMIT %(size)s
), last AS (
    SELECT id, created_at FROM looked ORDER BY created_at, id LIMIT 1
)
SELECT false, id, created_at FROM kept
UNION ALL SELECT true, id, created_at FROM last WHERE (SELECT count(*) FROM looked) = %(looked)s
"""
ROWS = """
SELECT id, job_id, type, queue, failure_kind, error_type, error_message, fingerprint, attempts, created_at,
    resolved_at, resolved_how, resolved_by
FROM turno.dead_letters WHERE id = ANY(%(ids)s::uuid[]) ORDER BY created_at DESC, id DESC
"""


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A dead letter as its table has it, without the stack."""

    id: UUID
    job_id: UUID
    type: str
    queue: str
    failure_kind: str
    error_type: str | None
    error_message: str | None
    fingerprint: str
    attempts: int
    created_at: datetime
    resolved_at: datetime | None
    resolved_how: str | None
    resolved_by: str | None


@dataclass(frozen=True, slots=True)
class LetterRows:
    """Rows, and the cursor of what follows; None at the end. A page may be short and not the last."""

    items: list[LetterRow]
    next_cursor: LetterCursor | None


def _fetch(sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def letter_list(
    wanted: LetterFilter, *, pending: bool | None = None, size: int = 50, after: LetterCursor | None = None
) -> LetterRows:
    """A page of the dead letters that a filter keeps. `pending`: True for those that wait, False for the resolved."""
    keys = _fetch(
        KEYS,
        wanted.params()
        | {
            "pending": pending,
            "at": after.at if after else None,
            "id": after.id if after else None,
            "looked": LOOKED_AT,
            "size": size + 1,
        },
    )
    kept = [(id_, at) for marks_the_end, id_, at in keys if not marks_the_end]
    more = [(id_, at) for marks_the_end, id_, at in keys if marks_the_end]
    items = [LetterRow(*row) for row in _fetch(ROWS, {"ids": [id_ for id_, _at in kept[:size]]})] if kept else []
    end = kept[size - 1] if len(kept) > size else (more[0] if more else None)
    return LetterRows(items, LetterCursor(end[1], end[0]) if end is not None else None)
