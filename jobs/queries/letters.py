"""The dead letters of one cause, newest first, each with what its job was asked to do and who ran it last."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.queries.causes import TABS
from jobs.queries.letterfilter import MATCHES, LetterFilter
from jobs.queries.payloadtext import preview, shown_fields

PREVIEW, FIELDS, VALUE = 160, 6, 60  # characters, fields, characters of each
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CURSOR = re.compile(r"([0-9]{1,17})-([0-9a-f]{32})")
# {tab} is one of TABS. A payload is shown by its first members; one that is no object, by its first characters.
PAGE = """
SELECT d.id, d.job_id, d.type, d.queue, d.failure_kind, d.error_type, left(d.error_message, 1000), d.attempts,
    d.created_at, GREATEST(0, extract(epoch FROM now() - d.created_at))::float8,
    said.fields, said.other, ran.worker_name, d.resolved_at,
    CASE WHEN d.resolved_at IS NOT NULL THEN GREATEST(0, extract(epoch FROM now() - d.resolved_at)) END::float8,
    d.resolved_how, d.resolved_by
FROM (
    SELECT * FROM turno.dead_letters AS d
    WHERE {tab} AND d.fingerprint = %(cause)s AND {matches}
      AND (%(at)s::timestamptz IS NULL OR (d.created_at, d.id) < (%(at)s::timestamptz, %(id)s::uuid))
    ORDER BY d.created_at DESC, d.id DESC LIMIT %(size)s
) AS d
LEFT JOIN turno.jobs AS j ON j.id = d.job_id
LEFT JOIN LATERAL (
    SELECT worker_name FROM turno.job_attempts AS a WHERE a.job_id = d.job_id ORDER BY a.ordinal DESC LIMIT 1
) AS ran ON true
LEFT JOIN LATERAL (
    SELECT
        CASE WHEN jsonb_typeof(j.payload) = 'object' THEN (
            SELECT json_agg(json_build_array(member.key, left(member.value, %(value)s)))
            FROM (SELECT key, value FROM jsonb_each_text(j.payload) LIMIT %(fields)s) AS member
        ) END AS fields,
        CASE WHEN jsonb_typeof(j.payload) <> 'object' THEN left(j.payload::text, %(preview)s) END AS other
) AS said ON true
ORDER BY d.created_at DESC, d.id DESC
"""
LETTERS = {tab: PAGE.format(tab=condition, matches=f"({MATCHES})") for tab, condition in TABS.items()}


@dataclass(frozen=True, slots=True)
class LetterCursor:
    """The last letter of a page."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{(self.at - EPOCH) // timedelta(microseconds=1)}-{self.id.hex}"

    @classmethod
    def parse(cls, text: str) -> "LetterCursor":
        """The cursor that `str()` wrote. Raises ValueError for anything else."""
        found = CURSOR.fullmatch(text)
        if found is None:
            raise ValueError("not a cursor")
        return cls(EPOCH + timedelta(microseconds=int(found[1])), UUID(found[2]))


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `preview`: its job's payload in short; `worker`: who ran it last, None where nobody did."""

    id: UUID
    job_id: UUID
    type: str
    queue: str
    failure_kind: str
    error_type: str | None
    message: str | None
    attempts: int
    created_at: datetime
    created_ago: float
    preview: str | None
    worker: str | None
    resolved_at: datetime | None
    resolved_ago: float | None
    resolved_how: str | None
    resolved_by: str | None


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Letters, and the cursor of those that follow; None at the end."""

    items: list[Letter]
    next_cursor: LetterCursor | None


def _letter(row: Sequence[Any]) -> Letter:
    """A row of PAGE, with its job's payload in one line, cut at PREVIEW; secret fields are dots."""
    *before, fields, other = row[:12]
    said = other if fields is None else preview(shown_fields(row[2], fields, VALUE))[:PREVIEW]
    return Letter(*[*before, said, *row[12:]])


def letters(
    cause: str,
    wanted: LetterFilter | None = None,
    *,
    tab: str = "pending",
    size: int = 50,
    after: LetterCursor | None = None,
) -> LetterPage:
    """The letters of a cause (its fingerprint) in a tab that a filter keeps, newest first. KeyError: unknown tab."""
    params = (wanted or LetterFilter()).params() | {
        "cause": cause,
        "at": after.at if after else None,
        "id": after.id if after else None,
        "size": size + 1,
        "preview": PREVIEW,
        "fields": FIELDS,
        "value": VALUE + 1,
    }
    with connections["default"].cursor() as cursor:
        cursor.execute(LETTERS[tab], params)
        items = [_letter(row) for row in cursor.fetchall()]
    last = items[size - 1] if len(items) > size else None
    return LetterPage(items[:size], LetterCursor(last.created_at, last.id) if last else None)
