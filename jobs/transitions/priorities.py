"""The priority of jobs that wait: changed in place, and announced anew where a broker has put them into order."""

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Verdict
from jobs.states import State
from jobs.transitions.outbox import broker, dispatch, enqueued
from jobs.transitions.sql import fetch, in_transaction, notify_all

LOCK = "SELECT id, state FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE"
# A broker has a message of the old priority: it gets another of the new one, and the token of that one alone counts.
# What the job holds in its hand goes over to the new token. COALESCE: see PROMOTE.
REPRIORITISE = f"""
WITH wanted AS MATERIALIZED (
    SELECT id, dispatch_id AS old,
        CASE WHEN %(broker)s::bool AND state = 'Enqueued' THEN gen_random_uuid() ELSE dispatch_id END AS token
    FROM turno.jobs
    WHERE id = ANY(%(ids)s::uuid[]) AND COALESCE(state, '') IN ('Scheduled', 'Enqueued')
      AND priority <> %(priority)s::int
), moved AS (
    UPDATE turno.jobs AS j
    SET priority = %(priority)s::int, dispatch_id = w.token,
        announced_at = CASE WHEN w.token IS DISTINCT FROM w.old THEN NULL ELSE j.announced_at END,
        admitted = CASE WHEN j.admitted = w.old THEN w.token ELSE j.admitted END
    FROM wanted AS w WHERE j.id = w.id AND j.id = ANY(%(ids)s::uuid[])
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority, w.old
), slots AS (
    UPDATE turno.concurrency_slots AS s SET dispatch_id = m.dispatch_id
    FROM moved AS m WHERE s.job_id = m.id AND s.dispatch_id = m.old AND m.dispatch_id <> m.old
) {dispatch("moved")}
SELECT DISTINCT queue FROM moved WHERE state = 'Enqueued'
"""


def reprioritise(ids: Sequence[UUID], priority: int, *, using: str = "default") -> list[Verdict]:
    """Give waiting jobs another priority, from -10 to 10; a verdict each, in order. Others are refused ("state").

    Within a queue the larger is claimed first, and of equal ones the one that was enqueued first, as before.
    """

    def work(cursor: CursorWrapper) -> list[Verdict]:
        found = {id_: State(state) for id_, state in fetch(cursor, LOCK, {"ids": list(ids)})}
        waiting = [id_ for id_, state in found.items() if state in (State.SCHEDULED, State.ENQUEUED)]
        if waiting:
            params = {"ids": waiting, "priority": priority, "broker": broker()}
            notify_all(cursor, enqueued(queue for (queue,) in fetch(cursor, REPRIORITISE, params)))
        return [_verdict(id_, found.get(id_), id_ in waiting) for id_ in ids]

    return in_transaction(using, work)


def _verdict(id_: UUID, state: State | None, waits: bool) -> Verdict:
    if state is None:
        return Verdict(id_, applied=False, state=None, problem="not_found")
    return Verdict(id_, applied=waits, state=state, problem=None if waits else "state")
