"""Enqueued -> Processing: by search (the N best of some queues) or by id and token (what a message named)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Claim
from jobs.serving import QUEUE_PAUSED
from jobs.transitions.circuits import KEPT_BACK, park_circuit
from jobs.transitions.sql import arrays, fetch, in_transaction
from jobs.transitions.unknown import park_unknown

LONG_NUMBER = re.compile(r"\d{19}")

# `seats` has (id, slot) of locked jobs. The state is tested again here: the row that is written is the latest one.
# COALESCE keeps the planner from answering this test by the partial index of all Enqueued jobs, which it would read
# from end to end while its statistics are older than the backlog. The lease counts from the writing of the row and not
# from the beginning of the transaction: one that had to wait for longer than a lease would be lost before it is there.
SEATED = """
, claimed AS (
    UPDATE turno.jobs AS j
    SET state = 'Processing', worker_id = %(worker_id)s::uuid, worker_label = %(label)s::jsonb,
        claim_id = %(claim_id)s::uuid, slot = s.slot, executions = j.executions + 1,
        claimed_at = now(), started_at = now(),
        lease_expires_at = clock_timestamp() + %(lease)s::float8 * interval '1 second',
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

# One statement. A queue that is paused is left out, so is a type whose breaker is not closed, but for its probe; a job
# that another worker is looking at is skipped.
CLAIM_NEXT = f"""
WITH offer AS (
    SELECT queue, slot, row_number() OVER (PARTITION BY queue ORDER BY slot) AS place
    FROM unnest(%(queues)s::text[], %(slots)s::int[]) AS o(queue, slot)
), room AS (
    SELECT o.queue, count(*) AS free FROM offer AS o
    WHERE NOT EXISTS (
        SELECT FROM turno.pauses AS p WHERE {QUEUE_PAUSED} AND p.value = o.queue
    )
    GROUP BY o.queue
), best AS MATERIALIZED (
    SELECT j.id, j.queue, j.priority, j.enqueued_at
    FROM room AS r CROSS JOIN LATERAL (
        SELECT id, queue, priority, enqueued_at FROM turno.jobs AS j
        WHERE state = 'Enqueued' AND queue = r.queue AND type = ANY(%(types)s::text[]) AND NOT {KEPT_BACK}
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

# A claim by id waits for the row and does not skip it: a message is acknowledged after this, and must not be lost. Only
# the id may lead to the row: no index of types, and no pass over all jobs of a queue, while the statistics are old. And
# the ids by themselves: of a small table the planner compares each row with each message else.
CLAIM_BY_ID = f"""
WITH seats AS MATERIALIZED (
    SELECT j.id, i.slot
    FROM turno.jobs AS j
    JOIN unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(slots)s::int[], %(queues)s::text[]) AS i(id, token, slot, queue)
      ON j.id = i.id AND j.dispatch_id = i.token AND j.queue = COALESCE(i.queue, j.queue)
    WHERE j.id = ANY (%(ids)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
      AND (%(types)s::text[] IS NULL OR COALESCE(j.type, '') = ANY(%(types)s::text[]))
      AND j.queue <> ALL (ARRAY(
          SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED}
      ))
      AND NOT {KEPT_BACK}
    ORDER BY j.id FOR NO KEY UPDATE OF j
)
{SEATED}
"""
LEFT_OUT = f"""
SELECT j.id, j.dispatch_id, j.type, {KEPT_BACK}
FROM turno.jobs AS j
JOIN unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(queues)s::text[]) AS i(id, token, queue)
  ON j.id = i.id AND j.dispatch_id = i.token AND j.queue = COALESCE(i.queue, j.queue)
WHERE j.id = ANY (%(ids)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
"""
PAUSED = f"""
SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED} AND p.value = ANY(%(queues)s::text[])
"""


class Wanted(NamedTuple):
    """A job that a message named by its token, and the slot that waits for it, of that queue (None: of the job's)."""

    job: UUID
    token: UUID
    slot: int
    queue: str | None = None


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
    wanted: Sequence[Wanted | tuple[UUID, UUID, int]],
    *,
    types: Sequence[str] | None = None,
    worker_id: UUID,
    claim_id: UUID,
    label: Mapping[str, Any],
    lease: float,
    using: str = "default",
) -> list[Claim]:
    """Claim jobs by (id, dispatch token, slot number, queue): those that are Enqueued with just that token.

    A duplicate, an old token and a job that is gone are left out of the answer, as are jobs of a paused queue, of
    another queue than the slot's, and of other types than `types` (None: any). `left` says which of them wait on.
    """
    if not wanted:
        return []
    named = arrays(("ids", "tokens", "slots", "queues"), [Wanted(*one) for one in wanted])
    params = _owner(worker_id, claim_id, label, lease) | named | {"types": None if types is None else list(types)}

    def work(cursor: CursorWrapper) -> list[Claim]:
        return [_claim(row) for row in fetch(cursor, CLAIM_BY_ID, params)]

    return in_transaction(using, work)


def left(out: Sequence[Wanted], *, types: Sequence[str], using: str = "default") -> set[UUID]:
    """Of what a claim of `types` has left out, the tokens that wait on for a worker: their queue is paused, or the
    breaker of their type was closed a moment ago.

    Jobs of other types, and of types whose breaker is not closed, are parked. The others are not Enqueued with that
    token, or in another queue than was said.
    """
    if not out:
        return set()

    def work(cursor: CursorWrapper) -> list[tuple[Any, ...]]:
        return fetch(cursor, LEFT_OUT, arrays(("ids", "tokens", "slots", "queues"), out))

    rows = in_transaction(using, work)
    unknown = [(id_, token) for id_, token, type_, _ in rows if type_ not in types]
    park_unknown(unknown, using=using)
    broken = {(id_, token): type_ for id_, token, type_, kept_back in rows if type_ in types and kept_back}
    parked = park_circuit(list(broken), types=set(broken.values()), using=using)
    gone = {token for _id, token in unknown} | {token for id_, token in broken if id_ in parked}
    return {token for _id, token, _type, _kept_back in rows} - gone


def paused(queues: Sequence[str], *, using: str = "default") -> set[str]:
    """Those of these queues that are paused now."""

    def work(cursor: CursorWrapper) -> set[str]:
        return {queue for (queue,) in fetch(cursor, PAUSED, {"queues": list(queues)})}

    return in_transaction(using, work)
