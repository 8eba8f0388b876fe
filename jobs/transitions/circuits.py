"""The breaker of a type, as a gate: opened by any worker's window; jobs that wait are parked behind it, and woken.

One row a type. Claims look at it inside their statement; whoever parks for it first locks it FOR SHARE and reads it
again; whoever closes it updates it first and wakes in a later statement. What closes it: `jobs.transitions.probes`.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.serving import LIVE, SERVED, SERVING
from jobs.states import Reason, Waiting
from jobs.transitions.gates import parked, wake_by, woken
from jobs.transitions.outbox import NAMED_JOBS
from jobs.transitions.sql import arrays, fetch, in_transaction, unnest
from jobs.transitions.unknown import HEAD, HEADS, LONG_UNSERVED, watched

# Of a job `j`: whether the breaker of its type keeps it from starting. Both lists are read once a statement.
KEPT_BACK = """(
    j.type = ANY (ARRAY(SELECT c.type FROM turno.circuits AS c WHERE c.state <> 'closed'))
    AND j.id <> ALL (ARRAY(SELECT c.probe_job_id FROM turno.circuits AS c WHERE c.state = 'half_open'))
)"""

TRIP_COLUMNS = {
    "type": "text",
    "executions": "int",
    "failures": "int",
    "span": "float8",
    "open_for": "float8",
    "age": "float8",
}
MISSING = """
INSERT INTO turno.circuits (type) SELECT unnest(%(type)s::text[]) ORDER BY 1 ON CONFLICT (type) DO NOTHING
"""
LOCKED = "SELECT FROM turno.circuits WHERE type = ANY(%(type)s::text[]) ORDER BY type FOR NO KEY UPDATE"
# What ended before the breaker closed last is no reason to open it: `age` says how far back the reason reaches.
TRIP = f"""
UPDATE turno.circuits AS c
SET state = 'open', opened_at = now(), retry_at = now() + i.open_for * interval '1 second', open_for = i.open_for,
    executions = i.executions, failures = i.failures, span = i.span
FROM {unnest("i", TRIP_COLUMNS)}
WHERE c.type = i.type AND c.state = 'closed'
  AND (c.closed_at IS NULL OR c.closed_at <= now() - i.age * interval '1 second')
RETURNING c.type
"""
TOO_FAR_BACK = """
SELECT type, extract(epoch FROM now() - closed_at)::float8 FROM turno.circuits
WHERE type = ANY(%(type)s::text[]) AND state = 'closed' AND closed_at IS NOT NULL
"""

GATES = """
SELECT type, state, COALESCE(retry_at <= now(), false) FROM turno.circuits ORDER BY type
"""
# What these say holds until the transaction ends: nobody closes a breaker between the look and the park.
LOCK_GATES = """
SELECT type, probe_job_id FROM turno.circuits
WHERE type = ANY(%(types)s::text[]) AND state <> 'closed' ORDER BY type FOR SHARE
"""
PARK_NAMED = f"""
WITH named AS MATERIALIZED ({NAMED_JOBS}), picked AS MATERIALIZED (
    SELECT j.id FROM turno.jobs AS j
    WHERE j.id = ANY (ARRAY(SELECT id FROM named)) AND COALESCE(j.type, '') = ANY(%(types)s::text[])
      AND j.id <> ALL(%(probes)s::uuid[])
)
{parked(Waiting.CIRCUIT, Reason.CIRCUIT_OPEN)}
"""
# Queues that work is taken from, each with those of `types` that somebody has there.
REACHED = f"""
WITH {LIVE}, {SERVED}, {SERVING}
SELECT q.queue, array_remove(array_agg(s.type), NULL)
FROM serving AS q LEFT JOIN (
    SELECT queue, type FROM served JOIN unnest(%(types)s::text[]) AS t(type) USING (type) WHERE takes
) AS s USING (queue)
GROUP BY q.queue ORDER BY q.queue
"""
# Only what a claim would have met: deeper in a queue the jobs wait as well where they are.
MET = f"""
    SELECT h.id, h.type FROM (
        SELECT queue, array_agg(gate) AS gates FROM {unnest("p", {"gate": "text", "queue": "text"})} GROUP BY queue
    ) AS q CROSS JOIN LATERAL ({HEADS}) AS h WHERE h.type = ANY(q.gates)
"""
MET_TYPES = f"SELECT DISTINCT type FROM ({MET}) AS met"
PARK_WAITING = f"""
WITH picked AS MATERIALIZED (
    SELECT j.id FROM turno.jobs AS j
    WHERE j.id = ANY (ARRAY(
        SELECT id FROM ({MET}) AS met
        WHERE type = ANY(%(types)s::text[]) AND id <> ALL(%(probes)s::uuid[]) LIMIT %(limit)s
    )) AND COALESCE(j.state, '') = 'Enqueued'
    ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
)
{parked(Waiting.CIRCUIT, Reason.CIRCUIT_OPEN)}
"""
# By the index of what is parked for breakers, and no other: the state is tested where the rows are locked.
WAKE = f"""
WITH chosen AS MATERIALIZED (
    SELECT j.id FROM turno.circuits AS c CROSS JOIN LATERAL (
        SELECT id, priority, created_at FROM turno.jobs
        WHERE waiting_for = 'circuit' AND gate = c.type ORDER BY priority DESC, created_at, id LIMIT %(limit)s
    ) AS j
    WHERE c.state = 'closed' AND (%(types)s::text[] IS NULL OR c.type = ANY(%(types)s::text[]))
    ORDER BY j.priority DESC, j.created_at, j.id LIMIT %(limit)s
)
{woken(Waiting.CIRCUIT)}
"""
# Whatever the breaker does, these jobs wait for a worker: in their queue they are met and told so.
RETURN = f"""
WITH {LONG_UNSERVED}, chosen AS MATERIALIZED (
    SELECT j.id FROM long AS l CROSS JOIN LATERAL (
        SELECT id FROM turno.jobs WHERE waiting_for = 'circuit' AND gate = l.type AND COALESCE(queue, '') = l.queue
        ORDER BY priority DESC, created_at, id LIMIT %(limit)s
    ) AS j
    LIMIT %(limit)s
)
{woken(Waiting.CIRCUIT)}
"""


class Trip(NamedTuple):
    """A reason to open the breaker of `type`: `failures` of `executions` within `span` seconds, the earliest of them
    `age` seconds ago; it stays open for `open_for` seconds before one job is let through."""

    type: str
    executions: int
    failures: int
    span: float
    open_for: float
    age: float


class Tripped(NamedTuple):
    """`opened`: the types whose breaker was opened by this call. `closed_for`: those whose breaker closed after the
    reason began, so many seconds ago: what ended since then has to be reason enough."""

    opened: frozenset[str]
    closed_for: dict[str, float]


def trip(reasons: Sequence[Trip], *, using: str = "default") -> Tripped:
    """Open the breakers of types that fail too often. One that is not closed stays as it is."""
    params = arrays(TRIP_COLUMNS, sorted(reasons))

    def work(cursor: CursorWrapper) -> Tripped:
        cursor.execute(MISSING, params)
        cursor.execute(LOCKED, params)
        opened = frozenset(type_ for (type_,) in fetch(cursor, TRIP, params))
        return Tripped(opened, dict(fetch(cursor, TOO_FAR_BACK, params)))

    return in_transaction(using, work) if reasons else Tripped(frozenset(), {})


def breakers(*, using: str = "default") -> list[tuple[str, str, bool]]:
    """Each breaker that was ever opened: type, state, and whether it is time to try whether its type works again."""
    return in_transaction(using, lambda cursor: fetch(cursor, GATES, {}))


def park_circuit(pairs: Sequence[tuple[UUID, UUID]], *, types: Collection[str], using: str = "default") -> set[UUID]:
    """Park jobs (id, dispatch token) of `types` whose breaker is not closed; answers those it did.

    The others are Enqueued with that token no more, or their breaker has closed meanwhile.
    """
    named = arrays(("ids", "tokens"), pairs)
    return set(in_transaction(using, lambda cursor: _park(cursor, PARK_NAMED, types, named))) if pairs else set()


def _park(cursor: CursorWrapper, statement: str, types: Collection[str], params: dict[str, Any]) -> list[UUID]:
    kept = fetch(cursor, LOCK_GATES, {"types": list(types)})
    if not kept:
        return []
    gates = {"types": [type_ for type_, _ in kept], "probes": [probe for _, probe in kept if probe is not None]}
    return [id_ for (id_,) in fetch(cursor, statement, params | gates)]


class Reached(NamedTuple):
    """Where somebody takes work: the `queues`, and the (type, queue) of which jobs can run there."""

    queues: list[str]
    pairs: list[tuple[str, str]]


def reached(cursor: CursorWrapper, types: Collection[str], silent_after: float) -> Reached:
    """Where jobs of `types` can be reached, by workers that were seen within `silent_after` seconds."""
    rows = fetch(cursor, REACHED, {"types": list(types), "silent": float(silent_after)})
    return Reached([queue for queue, _ in rows], [(type_, queue) for queue, served in rows for type_ in served])


def park_waiting(types: Collection[str], *, limit: int, silent_after: float, using: str = "default") -> int:
    """Park what waits at the head of a queue for a breaker of `types` that is not closed; returns how many, at most
    `limit`.

    In queues where a worker could start it that was seen within `silent_after` seconds: what nobody has the type of
    waits for that. Call again at once while there were some: the next may have come to the head.
    """

    def work(cursor: CursorWrapper) -> int:
        pairs = reached(cursor, types, silent_after).pairs
        params = arrays(("gate", "queue"), pairs) | {"limit": limit, "head": HEAD}
        met = [type_ for (type_,) in fetch(cursor, MET_TYPES, params)] if pairs else []
        return len(_park(cursor, PARK_WAITING, met, params)) if met else 0

    return in_transaction(using, work)


def wake(cursor: CursorWrapper, *, limit: int, types: Sequence[str] | None = None) -> int:
    """Enqueue what is parked for breakers that are closed by now (of `types`; None: any), in the caller's transaction.

    At most `limit`, by priority and age; returns how many.
    """
    return wake_by(cursor, WAKE, {"limit": limit, "types": None if types is None else list(types)})


def open_circuits(*, limit: int, using: str = "default") -> int:
    """Enqueue what is parked for breakers that are closed by now; returns how many, at most `limit`.

    The end of a probe wakes the first; this is for the rest, and for what was missed. Call again at once while it is as
    many as `limit`.
    """
    return in_transaction(using, lambda cursor: wake(cursor, limit=limit))


def return_unserved(
    *, limit: int, unserved_for: float, silent_after: float, unwatched_after: float, using: str = "default"
) -> int:
    """Enqueue what is parked for a breaker though no live worker of its queue has had the type for `unserved_for`
    seconds (`watch_unserved`): it waits for its type, and ends Failed after the grace. Returns how many, at most
    `limit`."""
    params = watched(silent_after, unwatched_after) | {"since": float(unserved_for), "limit": limit}
    return in_transaction(using, lambda cursor: wake_by(cursor, RETURN, params))
