"""What all gates have in common: the pieces of SQL by which a job is parked at one and goes on, and who hears of it."""

from collections.abc import Mapping
from typing import Any

from django.db.backends.utils import CursorWrapper

from jobs.states import Reason, Waiting
from jobs.transitions.outbox import broker, dispatch, enqueued
from jobs.transitions.sql import GATES, fetch, notify_all

# What `moved` (id, concurrency_key, type) has in its hand of other gates goes back, and whoever leads hears of it: the
# next may start. A SELECT must count `told`, or nobody is.
LET_GO = f"""freed AS (
    DELETE FROM turno.concurrency_slots WHERE job_id = ANY (ARRAY(SELECT id FROM moved))
), told AS (
    SELECT pg_notify('{GATES}', gate) FROM (
        SELECT 'key:' || concurrency_key AS gate FROM moved WHERE concurrency_key IS NOT NULL
        UNION
        SELECT 'type:' || type FROM moved
        WHERE type = ANY (ARRAY(SELECT name FROM turno.job_types WHERE max_running IS NOT NULL
            UNION ALL SELECT r.type FROM turno.rates AS r))
    ) AS gates
)"""


def parked(waiting_for: Waiting, reason: Reason = Reason.PARKED, *, gate: str = "j.type") -> str:
    """The SQL that parks the jobs of `picked`, a CTE of ids before it; selects their ids.

    `gate`: SQL of the gate's value, of the job `j`.
    """
    return f"""
, moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Scheduled', dispatch_id = NULL, announced_at = NULL, waiting_for = '{waiting_for}', gate = {gate}
    WHERE j.id = ANY (ARRAY(SELECT id FROM picked)) AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id, j.concurrency_key, j.type
), {LET_GO}, history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Enqueued', 'Scheduled', '{reason}' FROM moved ORDER BY id
)
SELECT id FROM moved WHERE (SELECT count(*) FROM told) >= 0 ORDER BY id
"""


def walked(waiting_for: Waiting) -> str:
    """The SQL, after WITH RECURSIVE, of `gates` (gate): those of this kind that somebody waits at, by one step of their
    index each."""
    waits = f"waiting_for = '{waiting_for}'"
    return f"""gates AS (
    (SELECT gate FROM turno.jobs WHERE {waits} AND gate IS NOT NULL ORDER BY gate LIMIT 1)
    UNION ALL
    SELECT next.gate FROM gates AS g CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE {waits} AND gate > g.gate ORDER BY gate LIMIT 1
    ) AS next
)"""


def woken(waiting_for: Waiting, *, keeps_place: bool = False) -> str:
    """The SQL that enqueues the jobs of `chosen`, a CTE of ids before it, that wait at such a gate; selects queues.

    They join the end of theirs, or each `keeps_place`: that of its last time there. A row that somebody has locked is
    skipped: whoever opens gates looks again.
    """
    since = "COALESCE(j.enqueued_at, now())" if keeps_place else "now()"
    return f"""
, locked AS MATERIALIZED (
    SELECT id FROM turno.jobs
    WHERE id = ANY (ARRAY(SELECT id FROM chosen)) AND COALESCE(state, '') = 'Scheduled'
      AND COALESCE(waiting_for, '') = '{waiting_for}'
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Enqueued', dispatch_id = gen_random_uuid(), announced_at = NULL,
        enqueued_at = {since}, waiting_for = NULL, gate = NULL
    FROM locked AS l WHERE j.id = l.id AND COALESCE(j.state, '') = 'Scheduled'
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Scheduled', 'Enqueued', 'gate_opened' FROM moved ORDER BY id
) {dispatch("moved")}
SELECT queue FROM moved
"""


def wake_by(cursor: CursorWrapper, statement: str, params: Mapping[str, Any]) -> int:
    """Execute a statement that ends in `woken`, and announce to their queues what it enqueued; returns how many."""
    queues = [queue for (queue,) in fetch(cursor, statement, {**params, "broker": broker()})]
    notify_all(cursor, enqueued(queues))
    return len(queues)
