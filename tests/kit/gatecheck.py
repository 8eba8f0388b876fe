"""`waiting_for` is always true: for every parked job the gate that it names is closed, in one snapshot of all tables.

A gate that has just opened is told by NOTIFY and opened a moment later: ask with `eventually`, or when all is quiet.
"""

from typing import NamedTuple
from uuid import UUID

from django.db import connections

from jobs.conf import conf
from jobs.ratelimit import PARTS
from jobs.serving import IN_FORCE, LIVE, SERVING

SOON = 10.0  # seconds: so long who is Enqueued without a slot is about to take one; for longer before who is behind it
# Each SELECT: parked jobs whose gate is open, and why it is.
LIES = f"""
WITH {LIVE}, {SERVING}, parked AS MATERIALIZED (
    SELECT * FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NULL
), in_force AS MATERIALIZED (
    SELECT scope, value, scope || ':' || value AS gate FROM turno.pauses AS p WHERE {IN_FORCE}
), held AS MATERIALIZED (
    SELECT k.kind, k.value, count(s.id) AS taken
    FROM turno.concurrency_keys AS k LEFT JOIN turno.concurrency_slots AS s ON s.key_id = k.id GROUP BY k.kind, k.value
), coming AS MATERIALIZED (
    SELECT e.concurrency_key AS value, e.queue, e.type, e.priority,
        e.enqueued_at > now() - interval '{SOON} seconds' AS lately
    FROM turno.jobs AS e
    WHERE e.state = 'Enqueued' AND e.concurrency_key IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM turno.concurrency_slots AS s JOIN turno.concurrency_keys AS k ON k.id = s.key_id
          WHERE s.job_id = e.id AND k.kind = 'key' AND s.dispatch_id = e.dispatch_id
      )
), budgets AS MATERIALIZED (
    SELECT r.type, r.allowed - COALESCE((
        SELECT sum((pair->>1)::numeric) FROM jsonb_array_elements(r.spent) AS s(pair)
        WHERE (pair->>0)::numeric >= floor(extract(epoch FROM now()) / (r.window / {PARTS})) - {PARTS}
    ), 0) - (SELECT count(*) FROM turno.jobs AS e WHERE e.state = 'Enqueued' AND e.type = r.type) AS left
    FROM turno.rates AS r
)
SELECT id, waiting_for, gate, 'it has no key, or another one' FROM parked
WHERE waiting_for = 'concurrency_key' AND gate IS DISTINCT FROM concurrency_key
UNION ALL
SELECT j.id, j.waiting_for, j.gate,
    format('%%s of %%s places are taken', COALESCE(h.taken, 0) + c.jobs, j.concurrency_limit)
FROM parked AS j
LEFT JOIN held AS h ON h.kind = 'key' AND h.value = j.concurrency_key
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM coming AS e WHERE e.value = j.concurrency_key
      AND (e.lately OR e.queue = j.queue AND e.type = j.type AND e.priority >= j.priority)
) AS c
WHERE j.waiting_for = 'concurrency_key' AND j.gate = j.concurrency_key
  AND COALESCE(h.taken, 0) + c.jobs < j.concurrency_limit
UNION ALL
SELECT j.id, j.waiting_for, j.gate, format('%%s of %%s may run', COALESCE(h.taken, 0), t.max_running)
FROM parked AS j
LEFT JOIN turno.job_types AS t ON t.name = j.type
LEFT JOIN held AS h ON h.kind = 'type' AND h.value = j.type
WHERE j.waiting_for = 'type_limit'
  AND (j.gate IS DISTINCT FROM j.type OR t.max_running IS NULL OR COALESCE(h.taken, 0) < t.max_running)
UNION ALL
SELECT j.id, j.waiting_for, j.gate, format('%%s more may start', b.left)
FROM parked AS j LEFT JOIN budgets AS b ON b.type = j.type
WHERE j.waiting_for = 'rate' AND (j.gate IS DISTINCT FROM j.type OR b.left IS NULL OR b.left > 0)
UNION ALL
SELECT j.id, j.waiting_for, j.gate, 'nothing that it belongs to is paused so' FROM parked AS j
WHERE j.waiting_for = 'pause' AND NOT EXISTS (
    SELECT FROM in_force AS p WHERE p.gate = j.gate AND (
        (p.scope = 'type' AND p.value = j.type) OR (p.scope = 'tag' AND p.value = ANY (j.tags))
        OR (p.scope = 'key' AND p.value = j.concurrency_key)
    )
)
UNION ALL
SELECT j.id, j.waiting_for, j.gate, 'the breaker is closed' FROM parked AS j
WHERE j.waiting_for = 'circuit' AND NOT EXISTS (
    SELECT FROM turno.circuits AS c WHERE c.type = j.type AND c.type = j.gate AND c.state <> 'closed'
)
UNION ALL
SELECT j.id, j.waiting_for, j.gate, 'a live worker of its queue has the type' FROM parked AS j
WHERE j.waiting_for = 'unknown_type' AND EXISTS (
    SELECT FROM live AS w JOIN serving USING (queue) WHERE queue = j.queue AND w.takes AND j.type = ANY (w.types)
)
UNION ALL
SELECT j.id, j.waiting_for, j.gate, 'no parent of it is left that has not ended' FROM parked AS j
WHERE j.waiting_for = 'parents' AND NOT EXISTS (
    SELECT FROM turno.job_dependencies AS d JOIN turno.jobs AS p ON p.id = d.parent_id
    WHERE d.child_id = j.id AND p.state NOT IN ('Succeeded', 'Failed', 'Cancelled')
)
ORDER BY 2, 3, 1
"""
# A slot belongs to a job that runs, or waits for a worker, with the very token for which it was taken.
STRAYS = """
SELECT s.id, k.kind || ':' || k.value, j.state, j.dispatch_id IS NOT DISTINCT FROM s.dispatch_id
FROM turno.concurrency_slots AS s
JOIN turno.concurrency_keys AS k ON k.id = s.key_id JOIN turno.jobs AS j ON j.id = s.job_id
WHERE j.state NOT IN ('Enqueued', 'Processing') OR j.dispatch_id IS DISTINCT FROM s.dispatch_id
ORDER BY s.id
"""
# More slots of a key than any of its holders allows.
CROWDED = """
SELECT k.kind || ':' || k.value, count(*), max(CASE k.kind WHEN 'key' THEN j.concurrency_limit ELSE t.max_running END)
FROM turno.concurrency_slots AS s
JOIN turno.concurrency_keys AS k ON k.id = s.key_id JOIN turno.jobs AS j ON j.id = s.job_id
LEFT JOIN turno.job_types AS t ON k.kind = 'type' AND t.name = k.value
GROUP BY k.kind, k.value
HAVING count(*) > max(CASE k.kind WHEN 'key' THEN j.concurrency_limit ELSE t.max_running END)
ORDER BY 1
"""


class Lie(NamedTuple):
    """A parked job that says that it waits for something that is open."""

    id: UUID
    waiting_for: str
    gate: str | None
    because: str


def lies(*, using: str = "default") -> list[Lie]:
    """The parked jobs whose gate is open now; by one statement, so by one snapshot."""
    with connections[using].cursor() as cursor:
        cursor.execute(LIES, {"silent": conf().worker.silent_after})
        return [Lie(*row) for row in cursor.fetchall()]


def strays(*, using: str = "default") -> list[tuple[int, str, str, bool]]:
    """Slots that belong to no execution: (slot, key, state of its job, whether the token is the job's)."""
    with connections[using].cursor() as cursor:
        cursor.execute(STRAYS)
        return cursor.fetchall()


def crowded(*, using: str = "default") -> list[tuple[str, int, int]]:
    """Keys with more slots than any of their holders allows: (key, slots, limit)."""
    with connections[using].cursor() as cursor:
        cursor.execute(CROWDED)
        return cursor.fetchall()


def waits_truly(*, using: str = "default") -> bool:
    """No parked job waits for what is open, no slot is a stray, no key is crowded: what holds when all is quiet."""
    return not (lies(using=using) or strays(using=using) or crowded(using=using))
