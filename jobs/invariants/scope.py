"""What is looked at: everything (of interest in a test), or of a living house what is bounded, found by an index.

Statements name the tables `looked`, jobs in any state, and `parked`, jobs at a gate. Of the living house `looked` has
the latest of each state, and `parked` the best at each gate, since these go first when it opens.
"""

from jobs.states import FINAL, PARKED, State

EACH = 500  # jobs of a state
SPAN = "6 hours"  # since when they may have ended
GATES = 300  # gates of a kind
BEST = 5  # jobs at a gate

COLUMNS = (
    "id, state, type, executions, dispatch_id, claim_id, claimed_at, worker_id, lease_expires_at, run_at, waiting_for, "
    "gate, enqueued_at, finished_at, recurring_job_id, fired_for"
)
AT_GATE = "id, type, queue, priority, tags, concurrency_key, concurrency_limit, waiting_for, gate, created_at"
IS_PARKED = "state = 'Scheduled' AND run_at IS NULL"


def _latest(state: State) -> str:
    if state in FINAL:
        return (
            f"(SELECT {COLUMNS} FROM turno.jobs WHERE state = '{state}' AND finished_at > now() - interval '{SPAN}'"
            f" ORDER BY finished_at DESC, id DESC LIMIT {EACH})"
        )
    return f"(SELECT {COLUMNS} FROM turno.jobs WHERE state = '{state}' ORDER BY id DESC LIMIT {EACH})"


LATEST = " UNION ALL ".join(_latest(state) for state in State)
KINDS = ", ".join(f"('{kind}')" for kind in PARKED)
# By the index of what is parked: from gate to gate, by kind, and the best at each. Children at whose parents nobody has
# looked as yet have no gate.
WALK = f"""
gates AS (
    SELECT k.kind AS waiting_for, first.gate, 1 AS place FROM (VALUES {KINDS}) AS k(kind) CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE {IS_PARKED} AND waiting_for = k.kind AND gate IS NOT NULL
        ORDER BY gate LIMIT 1
    ) AS first
    UNION ALL
    SELECT g.waiting_for, next.gate, g.place + 1 FROM gates AS g CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE {IS_PARKED} AND waiting_for = g.waiting_for AND gate > g.gate
        ORDER BY gate LIMIT 1
    ) AS next
    WHERE g.place < {GATES}
), parked AS MATERIALIZED (
    SELECT j.* FROM gates AS g CROSS JOIN LATERAL (
        SELECT {AT_GATE} FROM turno.jobs WHERE {IS_PARKED} AND waiting_for = g.waiting_for AND gate = g.gate
        ORDER BY priority DESC, created_at, id LIMIT {BEST}
    ) AS j
    UNION ALL
    (SELECT {AT_GATE} FROM turno.jobs WHERE {IS_PARKED} AND waiting_for = 'parents' AND gate IS NULL LIMIT {GATES})
)"""
SOME_LOOKED = f"looked AS MATERIALIZED ({LATEST})"
ALL_LOOKED = f"looked AS MATERIALIZED (SELECT {COLUMNS} FROM turno.jobs)"
ALL_PARKED = f"parked AS MATERIALIZED (SELECT {AT_GATE} FROM turno.jobs WHERE {IS_PARKED})"


def statement(wrong: str, *, whole: bool) -> str:
    """The statement of an invariant over everything, or over what is bounded; selects at most `most` ids, as text."""
    tables = []
    if "parked" in wrong:
        tables.append(ALL_PARKED if whole else WALK)
    if "looked" in wrong:
        tables.append(ALL_LOOKED if whole else SOME_LOOKED)
    head = f"WITH RECURSIVE {', '.join(tables)} " if tables else ""
    return f"{head}SELECT id::text FROM ({wrong}) AS wrong LIMIT %(most)s::int"
