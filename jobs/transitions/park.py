"""Enqueued -> Scheduled without an attempt: what a message named and its worker could not start; and the way back.

By id and token, waiting for the row as a claim does: the message is acknowledged after this, and names the job no more.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.transitions.outbox import NAMED_JOBS, broker, dispatch, enqueued
from jobs.transitions.sql import DUE, arrays, fetch, in_transaction, notify, notify_all

SHORTEST_WAIT = 1.0  # seconds for a lock that is held elsewhere, and as much again by chance
DEFER = f"""
WITH named AS MATERIALIZED ({NAMED_JOBS}), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Scheduled', dispatch_id = NULL, announced_at = NULL, waiting_for = 'lock',
        run_at = now() + %(wait)s::float8 * (1 + random()) * interval '1 second'
    FROM named AS n WHERE j.id = n.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Enqueued', 'Scheduled', 'lock_busy' FROM moved ORDER BY id
)
SELECT id FROM moved ORDER BY id
"""
# The gate of an unknown type. Nobody's notification opens it: whoever leads looks every two seconds which workers there
# are, so that nothing is missed by parking a moment too late.
SEEN = """
INSERT INTO turno.job_types (name)
SELECT DISTINCT type FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) ORDER BY type
ON CONFLICT (name) DO NOTHING
"""
PARK_UNKNOWN = f"""
WITH named AS MATERIALIZED ({NAMED_JOBS}), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Scheduled', dispatch_id = NULL, announced_at = NULL, waiting_for = 'unknown_type', gate = j.type
    FROM named AS n WHERE j.id = n.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Enqueued', 'Scheduled', 'parked' FROM moved ORDER BY id
)
SELECT id FROM moved ORDER BY id
"""
# Each type that a live worker has is looked up in the index of parked jobs: those that nobody serves are not read.
OPEN_UNKNOWN = f"""
WITH live AS MATERIALIZED (
    SELECT types, ARRAY(SELECT jsonb_object_keys(queues)) AS queues FROM turno.workers
    WHERE state = 'Online' AND seen_at > now() - %(silent)s::float8 * interval '1 second'
), served AS MATERIALIZED (
    SELECT t.type, array_agg(DISTINCT q.queue) AS queues
    FROM live AS l CROSS JOIN unnest(l.types) AS t(type) CROSS JOIN unnest(l.queues) AS q(queue) GROUP BY t.type
), parked AS MATERIALIZED (
    SELECT j.id FROM served AS s CROSS JOIN LATERAL (
        SELECT id, priority, created_at FROM turno.jobs
        WHERE state = 'Scheduled' AND run_at IS NULL AND waiting_for = 'unknown_type' AND gate = s.type
          AND queue = ANY (s.queues)
        ORDER BY priority DESC, created_at, id LIMIT %(limit)s
    ) AS j
    ORDER BY j.priority DESC, j.created_at, j.id LIMIT %(limit)s
), locked AS MATERIALIZED (
    SELECT id FROM turno.jobs
    WHERE id = ANY (ARRAY(SELECT id FROM parked)) AND COALESCE(state, '') = 'Scheduled' AND waiting_for = 'unknown_type'
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Enqueued', dispatch_id = gen_random_uuid(), announced_at = NULL, enqueued_at = now(),
        waiting_for = NULL, gate = NULL
    FROM locked AS l WHERE j.id = l.id AND COALESCE(j.state, '') = 'Scheduled'
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Scheduled', 'Enqueued', 'gate_opened' FROM moved ORDER BY id
) {dispatch("moved")}
SELECT queue FROM moved
"""


def defer(pairs: Sequence[tuple[UUID, UUID]], *, using: str = "default") -> set[UUID]:
    """Put off jobs (id, dispatch token) whose lock is held elsewhere, for 1 to 2 seconds; answers those it did.

    The others are Enqueued with that token no more.
    """

    def work(cursor: CursorWrapper) -> set[UUID]:
        moved = {id_ for (id_,) in fetch(cursor, DEFER, arrays(("ids", "tokens"), pairs) | {"wait": SHORTEST_WAIT})}
        notify(cursor, DUE, [""] if moved else [])
        return moved

    return in_transaction(using, work) if pairs else set()


def park_unknown(pairs: Sequence[tuple[UUID, UUID]], *, using: str = "default") -> set[UUID]:
    """Park jobs (id, dispatch token) whose type their worker does not know; answers those it did.

    `open_unknown` brings them back once a live worker serves their queue and type.
    """
    named = arrays(("ids", "tokens"), pairs)

    def work(cursor: CursorWrapper) -> set[UUID]:
        cursor.execute(SEEN, named)
        return {id_ for (id_,) in fetch(cursor, PARK_UNKNOWN, named)}

    return in_transaction(using, work) if pairs else set()


def open_unknown(*, limit: int, silent_after: float, using: str = "default") -> int:
    """Enqueue jobs parked for an unknown type that a worker serves now, in their queue; returns how many.

    A worker counts whose last sign of life is less than `silent_after` seconds old. At most `limit`, by priority and
    age: call again at once while it is as many. The leader's, every two seconds.
    """

    def work(cursor: CursorWrapper) -> int:
        params = {"limit": limit, "silent": float(silent_after), "broker": broker()}
        queues = [queue for (queue,) in fetch(cursor, OPEN_UNKNOWN, params)]
        notify_all(cursor, enqueued(queues))
        return len(queues)

    return in_transaction(using, work)
