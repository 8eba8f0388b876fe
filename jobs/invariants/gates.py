"""What a job waits for is true: in one snapshot of all tables, the gate that it names is closed.

A gate that has just opened is told by NOTIFY and opened a moment later, so this holds soon and not always.
"""

from django.utils.translation import gettext_noop

from jobs.invariants.base import Invariant, Promise
from jobs.ratelimit import PARTS
from jobs.serving import IN_FORCE, LIVE, SERVING, WOKEN, coming

# Who stands before the parked job `j` at its key: what has a slot, what was enqueued lately, and for however long what
# is before it in its own queue.
BEFORE = f"""
SELECT (
    SELECT count(*) FROM turno.concurrency_keys AS k JOIN turno.concurrency_slots AS s ON s.key_id = k.id
    WHERE k.kind = 'key' AND k.value = j.concurrency_key
) + (
    SELECT count(*) FROM ({coming("j.concurrency_key")}) AS e
    WHERE e.lately OR e.queue = j.queue AND e.type = j.type AND e.priority >= j.priority
) AS jobs
"""
OF_TYPE = """
SELECT count(s.id) AS taken FROM turno.concurrency_keys AS k JOIN turno.concurrency_slots AS s ON s.key_id = k.id
WHERE k.kind = 'type' AND k.value = j.type
"""
# What the rate of each of these types leaves: its starts in the window are paid for, and what was woken is about to
# start.
BUDGETS = f"""
SELECT r.type, r.allowed - COALESCE((
    SELECT sum((pair->>1)::numeric) FROM jsonb_array_elements(r.spent) AS s(pair)
    WHERE (pair->>0)::numeric >= floor(extract(epoch FROM now()) / (r.window / {PARTS})) - {PARTS}
), 0) - (
    SELECT count(*) FROM (SELECT FROM turno.jobs AS e WHERE {WOKEN} AND e.type = r.type LIMIT r.allowed) AS woken
) AS left
FROM turno.rates AS r WHERE r.type IN (SELECT p.type FROM parked AS p WHERE p.waiting_for = 'rate')
"""
KEY_FREE = f"""
SELECT j.id FROM parked AS j CROSS JOIN LATERAL ({BEFORE}) AS b
WHERE j.waiting_for = 'concurrency_key'
  AND (j.gate IS DISTINCT FROM j.concurrency_key OR b.jobs < j.concurrency_limit)
"""
TYPE_FREE = f"""
SELECT j.id FROM parked AS j LEFT JOIN turno.job_types AS t ON t.name = j.type CROSS JOIN LATERAL ({OF_TYPE}) AS h
WHERE j.waiting_for = 'type_limit'
  AND (j.gate IS DISTINCT FROM j.type OR t.max_running IS NULL OR h.taken < t.max_running)
"""
RATE_FREE = f"""
SELECT j.id FROM parked AS j LEFT JOIN ({BUDGETS}) AS b ON b.type = j.type
WHERE j.waiting_for = 'rate' AND (j.gate IS DISTINCT FROM j.type OR b.left IS NULL OR b.left > 0)
"""
NOT_PAUSED = f"""
SELECT j.id FROM parked AS j
WHERE j.waiting_for = 'pause' AND NOT EXISTS (
    SELECT FROM turno.pauses AS p WHERE {IN_FORCE} AND p.scope || ':' || p.value = j.gate AND (
        p.scope = 'type' AND p.value = j.type OR p.scope = 'tag' AND p.value = ANY (j.tags)
        OR p.scope = 'key' AND p.value = j.concurrency_key
    )
)
"""
CIRCUIT_CLOSED = """
SELECT j.id FROM parked AS j
WHERE j.waiting_for = 'circuit' AND NOT EXISTS (
    SELECT FROM turno.circuits AS c WHERE c.type = j.type AND c.type = j.gate AND c.state <> 'closed'
)
"""
TYPE_KNOWN = f"""
WITH {LIVE}, {SERVING}
SELECT j.id FROM parked AS j
WHERE j.waiting_for = 'unknown_type' AND EXISTS (
    SELECT FROM live AS w JOIN serving USING (queue) WHERE queue = j.queue AND w.takes AND j.type = ANY (w.types)
)
"""
PARENTS_ENDED = """
SELECT j.id FROM parked AS j
WHERE j.waiting_for = 'parents' AND NOT EXISTS (
    SELECT FROM turno.job_dependencies AS d
    CROSS JOIN LATERAL (SELECT state FROM turno.jobs WHERE id = d.parent_id OFFSET 0) AS p
    WHERE d.child_id = j.id AND p.state NOT IN ('Succeeded', 'Failed', 'Cancelled')
)
"""


def _closed(name: str, says: str, wrong: str) -> Invariant:
    advice = gettext_noop("The sweep of the gates does not open this one: look for its errors in the leader's logs.")
    return Invariant(name, Promise.LOST, says, advice, wrong, soon=True)


GATES = (
    _closed(
        "key_is_full", gettext_noop("A job that waits for its concurrency key waits because it is full."), KEY_FREE
    ),
    _closed(
        "type_is_full", gettext_noop("A job that waits for its type's limit waits because it is reached."), TYPE_FREE
    ),
    _closed(
        "rate_is_spent", gettext_noop("A job that waits for its type's rate waits because it is spent."), RATE_FREE
    ),
    _closed("pause_holds", gettext_noop("A job that waits for a pause is really paused."), NOT_PAUSED),
    _closed(
        "breaker_is_open", gettext_noop("A job that waits for a breaker waits because it is open."), CIRCUIT_CLOSED
    ),
    _closed(
        "type_is_unknown", gettext_noop("A job that waits for its type waits because no worker has it."), TYPE_KNOWN
    ),
    _closed("parents_run", gettext_noop("A job that waits for its parents has one that has not ended."), PARENTS_ENDED),
)
