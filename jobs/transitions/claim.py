"""Enqueued -> Processing: by search (the N best of some queues) or by id and token (what a message named)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Claim
from jobs.transitions.sql import fetch, in_transaction

LONG_NUMBER = re.compile(r"\d{19}")

# `seats` has (id, slot) of locked jobs. The state is tested again here: the row that is written is the latest one.
# COALESCE keeps the planner from answering this test by the partial index of all Enqueued jobs, which it would read
# from end to end while its statistics are older than the backlog.
SEATED = """
, claimed AS (
    UPDATE turno.jobs AS j
    SET state = 'Processing', worker_id = %(worker_id)s::uuid, worker_label = %(label)s::jsonb,
        claim_id = %(claim_id)s::uuid, slot = s.slot, executions = j.executions + 1,
        claimed_at = now(), started_at = now(), lease_expires_at = now() + %(lease)s::float8 * interval '1 second',
        progress = 0, stage = ''
    FROM seats AS s
    WHERE j.id = s.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id, j.dispatch_id, j.type, j.queue, j.payload, j.slot, j.executions, j.attempts_used,
              j.max_attempts, j.lost_count, j.timeout, j.at_most_once, j.claimed_at, j.owner, j.tags,
              j.priority, j.enqueued_at
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, worker_id, execution)
    SELECT id, 'Enqueued', 'Processing', 'claimed', %(worker_id)s::uuid, executions FROM claimed
)
SELECT id, dispatch_id, type, queue, payload, slot, executions, attempts_used, max_attempts, lost_count, timeout,
       at_most_once, claimed_at, owner, tags
FROM claimed ORDER BY priority DESC, enqueued_at, id
"""

# One statement. A queue that is paused is left out; a job that another worker is looking at is skipped.
CLAIM_NEXT = f"""
WITH offer AS (
    SELECT queue, slot, row_number() OVER (PARTITION BY queue ORDER BY slot) AS place
    FROM unnest(%(queues)s::text[], %(slots)s::int[]) AS o(queue, slot)
), room AS (
    SELECT o.queue, count(*) AS free FROM offer AS o
    WHERE NOT EXISTS (
        SELECT FROM turno.pauses AS p
        WHERE p.scope = 'queue' AND p.value = o.queue AND (p.until IS NULL OR p.until > now())
    )
    GROUP BY o.queue
), best AS MATERIALIZED (
    SELECT j.id, j.queue, j.priority, j.enqueued_at
    FROM room AS r CROSS JOIN LATERAL (
        SELECT id, queue, priority, enqueued_at FROM turno.jobs
        WHERE state = 'Enqueued' AND queue = r.queue AND type = ANY(%(types)s::text[])
        ORDER BY priority DESC, enqueued_at, id
        LIMIT r.free FOR NO KEY UPDATE SKIP LOCKED
    ) AS j
), seats AS (
    SELECT b.id, o.slot
    FROM (
        SELECT id, queue, row_number() OVER (PARTITION BY queue ORDER BY priority DESC, enqueued_at, id) AS place
        FROM best
    ) AS b JOIN offer AS o USING (queue, place)
)
{SEATED}
"""

# A claim by id waits for the row and does not skip it: a message is acknowledged after this, and must not be lost.
CLAIM_BY_ID = f"""
WITH seats AS MATERIALIZED (
    SELECT j.id, i.slot
    FROM turno.jobs AS j
    JOIN unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(slots)s::int[]) AS i(id, token, slot)
      ON j.id = i.id AND j.dispatch_id = i.token
    WHERE COALESCE(j.state, '') = 'Enqueued'
    ORDER BY j.id FOR NO KEY UPDATE OF j
)
{SEATED}
"""


def _payload(text: str) -> Any:
    """The payload as it was enqueued: of whole numbers over 64 bits orjson would make floats, or refuse them."""
    return json.loads(text) if LONG_NUMBER.search(text) else orjson.loads(text)


def _claim(row: Sequence[Any]) -> Claim:
    values = list(row)
    values[4] = _payload(row[4])
    values[14] = tuple(row[14])
    return Claim(*values)


def _owner(worker_id: UUID, claim_id: UUID, label: Mapping[str, Any], lease: float) -> dict[str, Any]:
    return {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "label": orjson.dumps(label).decode(),
        "lease": float(lease),
    }


def claim_next(
    offer: Sequence[tuple[str, int]],
    *,
    types: Sequence[str],
    worker_id: UUID,
    claim_id: UUID,
    label: Mapping[str, Any],
    lease: float,
    using: str = "default",
) -> list[Claim]:
    """Claim the best waiting jobs for the free slots of `offer` (queue, slot number), best first.

    Only jobs of `types` are taken, by priority, then by the instant of enqueueing. `lease` is in seconds, counted by
    the database. `label` names the worker for people. Returns at most one job a slot. Raises OperationalError.
    """
    if not offer or not types:
        return []
    params = _owner(worker_id, claim_id, label, lease) | {
        "queues": [queue for queue, _ in offer],
        "slots": [slot for _, slot in offer],
        "types": list(types),
    }

    def work(cursor: CursorWrapper) -> list[Claim]:
        return [_claim(row) for row in fetch(cursor, CLAIM_NEXT, params)]

    return in_transaction(using, work)


def claim(
    wanted: Sequence[tuple[UUID, UUID, int]],
    *,
    worker_id: UUID,
    claim_id: UUID,
    label: Mapping[str, Any],
    lease: float,
    using: str = "default",
) -> list[Claim]:
    """Claim jobs by (id, dispatch token, slot number): those that are Enqueued with just that token.

    A duplicate, an old token and a job that is gone are left out of the answer; the caller drops them.
    """
    if not wanted:
        return []
    ids, tokens, slots = (list(column) for column in zip(*wanted, strict=True))
    params = _owner(worker_id, claim_id, label, lease) | {"ids": ids, "tokens": tokens, "slots": slots}

    def work(cursor: CursorWrapper) -> list[Claim]:
        return [_claim(row) for row in fetch(cursor, CLAIM_BY_ID, params)]

    return in_transaction(using, work)
