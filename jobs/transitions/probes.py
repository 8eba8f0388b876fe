"""The probe of a breaker: one parked job that is let through, whose end closes the breaker or opens it anew.

That happens inside the statement that writes the end (`finish`): no crash leaves a breaker half-open, and no late
result of another execution counts. Here: which job it is, and what is done about one that comes to no end.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from jobs.states import Waiting
from jobs.transitions.circuits import reached
from jobs.transitions.gates import wake_by, woken
from jobs.transitions.sql import arrays, fetch, in_transaction, unnest

# A probe is no use any more when it waits at another gate or has ended, when nobody can reach it in its queue, or when
# it runs for longer than it may (a handler that ignores its time limit).
STALE = """
WITH half AS MATERIALIZED (
    SELECT type, probe_job_id, probe_deadline, probe_seconds FROM turno.circuits
    WHERE state = 'half_open' ORDER BY type FOR NO KEY UPDATE SKIP LOCKED
), useful AS MATERIALIZED (
    SELECT h.type FROM half AS h JOIN turno.jobs AS j ON j.id = h.probe_job_id
    WHERE j.id = ANY (ARRAY(SELECT probe_job_id FROM half)) AND (
        COALESCE(j.state, '') = 'Processing' AND now() < GREATEST(
            h.probe_deadline, j.claimed_at + COALESCE(h.probe_seconds, 0) * interval '1 second'
        ) OR COALESCE(j.state, '') = 'Enqueued' AND j.queue = ANY(%(queues)s::text[])
    )
)
UPDATE turno.circuits AS c
SET state = 'open', probe_job_id = NULL, probe_deadline = NULL, probe_seconds = NULL,
    retry_at = now() + c.open_for * interval '1 second'
FROM half AS h
WHERE c.type = h.type AND c.state = 'half_open' AND NOT EXISTS (SELECT FROM useful AS u WHERE u.type = c.type)
RETURNING c.type
"""
# Of the parked jobs that somebody can reach the best, and, when one has failed at this already, the best or the last,
# by chance: where it is the jobs themselves that fail, those in front would keep all the others waiting for a probe
# each. Without a job the breaker stays open, ready for the next. The probe keeps its place in the queue: behind a long
# backlog it would keep all the others waiting for that.
REACHABLE = "waiting_for = 'circuit' AND gate = d.type AND COALESCE(queue, '') = ANY(d.queues)"
PROBE = f"""
WITH due AS MATERIALIZED (
    SELECT c.type, i.timeout, w.queues, c.retry_at > c.opened_at + c.open_for * interval '1 second' AS again
    FROM {unnest("i", {"type": "text", "timeout": "float8"})}
    JOIN (SELECT gate, array_agg(queue) AS queues FROM {unnest("p", {"gate": "text", "queue": "text"})} GROUP BY gate)
        AS w ON w.gate = i.type
    JOIN turno.circuits AS c ON c.type = i.type
    WHERE c.state = 'open' AND c.retry_at <= now() ORDER BY c.type FOR NO KEY UPDATE OF c SKIP LOCKED
), chosen AS MATERIALIZED (
    SELECT d.type, j.id, COALESCE(j.timeout, d.timeout) + %(patience)s::float8 AS seconds
    FROM due AS d CROSS JOIN LATERAL (
        SELECT id, timeout FROM (
            SELECT id, timeout, 0 AS place FROM (
                SELECT id, timeout FROM turno.jobs WHERE {REACHABLE}
                ORDER BY priority DESC, created_at, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
            ) AS best
            UNION ALL
            SELECT id, timeout, 1 FROM (
                SELECT id, timeout FROM turno.jobs WHERE {REACHABLE}
                ORDER BY priority, created_at DESC, id DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
            ) AS worst
        ) AS both_ends
        ORDER BY CASE WHEN d.again THEN random() ELSE place END LIMIT 1
    ) AS j
), half AS (
    UPDATE turno.circuits AS c
    SET state = 'half_open', probe_job_id = h.id, probe_seconds = h.seconds,
        probe_deadline = now() + h.seconds * interval '1 second'
    FROM chosen AS h WHERE c.type = h.type
)
{woken(Waiting.CIRCUIT, keeps_place=True)}
"""


def probe(
    timeouts: Mapping[str, float], *, patience: float, silent_after: float, using: str = "default"
) -> tuple[list[str], int]:
    """Let one job through each breaker whose time has come; open anew those whose probe came to nothing.

    `timeouts`: types that may be due, with the seconds an attempt of theirs may take; a probe may run for `patience`
    seconds more. A job is reached by a worker that was seen within `silent_after` seconds; where none is that has its
    type, one is let through all the same, and what it meets in its queue is told of it. Returns the types that were
    opened anew, and how many probes were let through.
    """

    def work(cursor: CursorWrapper) -> tuple[list[str], int]:
        where = reached(cursor, timeouts, silent_after)
        anew = [type_ for (type_,) in fetch(cursor, STALE, {"queues": where.queues})]
        params = arrays(("type", "timeout"), sorted(timeouts.items())) | {"patience": float(patience)}
        through = _through(cursor, params, where.pairs) if where.pairs else 0
        if through < len(timeouts):
            through += _through(cursor, params, [(type_, queue) for type_ in timeouts for queue in where.queues])
        return anew, through

    return in_transaction(using, work)


def _through(cursor: CursorWrapper, params: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> int:
    return wake_by(cursor, PROBE, params | arrays(("gate", "queue"), pairs))


def probed(which: str) -> str:
    """The SQL that locks the breakers whose probe is a Processing job of which the SQL `which` is true (as `j`).

    For who ends jobs that it has locked before: a gate is locked before the jobs, by all verbs.
    """
    return f"""
SELECT FROM turno.circuits AS c WHERE c.state = 'half_open' AND EXISTS (
    SELECT FROM turno.jobs AS j WHERE j.id = c.probe_job_id AND COALESCE(j.state, '') = 'Processing' AND {which}
) ORDER BY c.type FOR NO KEY UPDATE
"""
