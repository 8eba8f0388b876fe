"""A page of the list as the screen shows it, and its rows as they are now: with ages by the database's clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.models import Job
from jobs.queries.cursor import NEWEST, OLDEST, Cursor
from jobs.queries.jobfilter import JobFilter
from jobs.queries.payloadtext import shown_fields, without_secrets
from jobs.queries.walking import created, walk

PAGE = 50
FIELDS, FIELD_LENGTH = 8, 80
# `duration` is that of the last execution. The head of a queue is the first entry of its part of the claim index.
ROWS = """
WITH heads AS MATERIALIZED (
    SELECT h.id FROM (
        SELECT DISTINCT queue FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) AND state = 'Enqueued'
    ) AS q CROSS JOIN LATERAL (
        SELECT j.id FROM turno.jobs AS j WHERE j.state = 'Enqueued' AND j.queue = q.queue
        ORDER BY j.priority DESC, j.enqueued_at, j.id LIMIT 1
    ) AS h
)
SELECT j.id, j.type, j.queue, j.state, j.priority, j.progress, j.stage, j.executions, j.attempts_used, j.max_attempts,
    j.waiting_for, j.gate, j.run_at, j.created_at, j.failure_kind, j.error_type, j.tags, j.origin,
    left(j.error_message, 300) AS error_message, j.cancel_requested_at IS NOT NULL AS cancelling,
    j.cancel_requested_by, j.worker_label->>'name' AS worker,
    extract(epoch FROM now() - j.created_at)::float8 AS created_ago,
    extract(epoch FROM now() - j.claimed_at)::float8 AS elapsed,
    extract(epoch FROM j.run_at - now())::float8 AS due_in,
    CASE WHEN j.finished_at IS NOT NULL THEN last.duration END AS duration,
    j.state = 'Enqueued' AND EXISTS (
        SELECT FROM turno.pauses AS p
        WHERE p.scope = 'queue' AND p.value = j.queue AND (p.until IS NULL OR p.until > now())
    ) AS queue_paused,
    j.id IN (SELECT id FROM heads) AS first_in_queue,
    CASE WHEN jsonb_typeof(j.payload) = 'object' THEN (
        SELECT json_agg(json_build_array(f.key, left(f.value, %(length)s)))
        FROM (SELECT key, value FROM jsonb_each_text(j.payload) LIMIT %(fields)s) AS f
    ) END AS fields
FROM turno.jobs AS j
LEFT JOIN LATERAL (
    SELECT a.duration FROM turno.job_attempts AS a WHERE a.job_id = j.id ORDER BY a.ordinal DESC LIMIT 1
) AS last ON true
WHERE j.id = ANY(%(ids)s::uuid[])
"""
CLOCK = "SELECT now()"


@dataclass(frozen=True, slots=True)
class JobList:
    """A page: `ids` as they stand on it, and the cursors of its neighbours, None where there is none.

    `complete` is false when the time was over before the page was full: then `looked` jobs were read one by one, back
    (or on) to `reached`, and the next page goes on from there.
    """

    ids: list[UUID]
    newer: Cursor | None
    older: Cursor | None
    complete: bool
    looked: int
    reached: datetime | None


def now() -> datetime:
    """The database's instant."""
    with connections["default"].cursor() as cursor:
        cursor.execute(CLOCK)
        instant: datetime = cursor.fetchone()[0]
        return instant


def job_list(
    wanted: JobFilter, *, order: str = NEWEST, at: Cursor | None = None, size: int = PAGE, seconds: float = 0.7
) -> JobList:
    """The page that follows `at` in its order, always shown in `order`: a cursor of the other order leads back."""
    going = at.order if at is not None else order
    walked = walk(wanted, order=going, after=at.id if at is not None else None, need=size + 1, seconds=seconds)
    ids = walked.ids[:size]
    more = len(walked.ids) > size
    stopped = not walked.done and not more
    onward = walked.reach if stopped else (ids[-1] if more else None)
    ahead = Cursor(going, onward) if onward is not None else None
    other = OLDEST if going == NEWEST else NEWEST
    turn = ids[0] if ids else (at.id if at is not None else None)
    behind = Cursor(other, turn) if at is not None and turn is not None else None
    shown = ids if going == order else ids[::-1]
    newer, older = (behind, ahead) if going == NEWEST else (ahead, behind)
    reached = created(onward) if stopped and onward is not None else None
    return JobList(shown, newer, older, not stopped, walked.looked, reached)


def rows(ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """These jobs as they are now, in this order; those that are gone are left out.

    `fields`: pairs of a payload field and its value in words (None for a secret one); ages and spans are seconds.
    """
    if not ids:
        return []
    with connections["default"].cursor() as cursor:
        cursor.execute(ROWS, {"ids": list(ids), "length": FIELD_LENGTH + 1, "fields": FIELDS})
        names = [column.name for column in cursor.description]
        found = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
    for row in found.values():
        row["fields"] = shown_fields(row["type"], row["fields"], FIELD_LENGTH)
    return [found[id_] for id_ in ids if id_ in found]


def payloads(ids: Sequence[UUID]) -> dict[UUID, Any]:
    """The whole payloads of these jobs, without what is secret."""
    found = Job.objects.filter(id__in=list(ids)).values_list("id", "type", "payload")
    return {id_: without_secrets(type_name, payload) for id_, type_name, payload in found}
