"""Scheduled -> Enqueued when the instant has come, by the database's clock; parked jobs are never touched here."""

from django.db.backends.utils import CursorWrapper

from jobs.transitions.outbox import broker, dispatch, enqueued
from jobs.transitions.sql import fetch, in_transaction, notify_all

# COALESCE keeps the planner from answering the test of the rows found by the partial index of all Scheduled jobs, which
# it would read from end to end while its statistics are older than the backlog.
PROMOTE = f"""
WITH due AS MATERIALIZED (
    SELECT id FROM turno.jobs
    WHERE state = 'Scheduled' AND run_at <= now()
    ORDER BY run_at, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Enqueued', dispatch_id = gen_random_uuid(), announced_at = NULL, enqueued_at = now(),
        waiting_for = NULL, run_at = NULL
    WHERE j.id = ANY (ARRAY(SELECT id FROM due)) AND COALESCE(j.state, '') = 'Scheduled'
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Scheduled', 'Enqueued', 'due' FROM moved ORDER BY id
) {dispatch("moved")}
SELECT queue FROM moved
"""
# What is beyond the hour is of no interest: of jobs that somebody is inserting for next month each would be visited.
NEXT_DUE = """
SELECT GREATEST(0, extract(epoch FROM run_at - now()))::float8 FROM turno.jobs
WHERE state = 'Scheduled' AND run_at < now() + interval '1 hour' ORDER BY run_at LIMIT 1
"""


def promote(*, limit: int, using: str = "default") -> int:
    """Enqueue due jobs, oldest instant first, and wake their queues. Returns how many (at most `limit`)."""

    def work(cursor: CursorWrapper) -> int:
        queues = [queue for (queue,) in fetch(cursor, PROMOTE, {"limit": limit, "broker": broker()})]
        notify_all(cursor, enqueued(queues))
        return len(queues)

    return in_transaction(using, work)


def next_due(*, using: str = "default") -> float | None:
    """Seconds until the next job is due (0 when one is); None when none is within the hour."""

    def work(cursor: CursorWrapper) -> float | None:
        rows = fetch(cursor, NEXT_DUE, {})
        return rows[0][0] if rows else None

    return in_transaction(using, work)
