"""The statement that starts executions: Enqueued jobs get a worker, a lease and a slot. Used by every claim."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from jobs.jsonvalues import has_long_number
from jobs.outcomes import Claim

COLUMNS = 15  # of a row that is a claim
KEYED = COLUMNS + 2

# What a job `j` becomes that is started, of whichever worker the parameters name; and its row, as a claim wants it.
# The lease counts from the writing of the row and not from the beginning of the transaction: one that had to wait for
# longer than a lease would be lost before it is there.
BEGUN = """state = 'Processing', worker_id = %(worker_id)s::uuid, worker_label = %(label)s::jsonb,
        claim_id = %(claim_id)s::uuid, executions = j.executions + 1, claimed_at = now(), started_at = now(),
        lease_expires_at = clock_timestamp() + %(lease)s::float8 * interval '1 second', progress = 0, stage = ''"""
ROW = """j.id, j.dispatch_id, j.type, j.queue, j.payload, j.slot, j.executions, j.attempts_used,
              j.max_attempts, j.lost_count, j.timeout, j.at_most_once, j.claimed_at, j.owner, j.tags,
              j.priority, j.enqueued_at, j.concurrency_key IS NOT NULL OR j.admitted IS NOT NULL AS keyed"""
STARTED = """id, dispatch_id, type, queue, payload, slot, executions, attempts_used, max_attempts, lost_count, timeout,
       at_most_once, claimed_at, owner, tags, priority, enqueued_at, keyed"""
# `seats` has (id, slot) of locked jobs. The state is tested again here: the row that is written is the latest one.
# COALESCE keeps the planner from answering this test by the partial index of all Enqueued jobs, which it would read
# from end to end while its statistics are older than the backlog.
SEATED = f"""
, claimed AS (
    UPDATE turno.jobs AS j
    SET slot = s.slot, {BEGUN}
    FROM seats AS s
    WHERE j.id = s.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING {ROW}
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, worker_id, execution)
    SELECT id, 'Enqueued', 'Processing', 'claimed', %(worker_id)s::uuid, executions FROM claimed
)
SELECT {STARTED} FROM claimed
"""
# After SEATED: the jobs of `picked` (id, slot, gated, type, key, key_limit …) that must first be let through gates.
OR_GATED = """
UNION ALL
SELECT id, dispatch_id, type, key, NULL, slot, key_limit, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, priority,
       enqueued_at, NULL
FROM picked WHERE gated
"""


def owned_by(worker_id: UUID, claim_id: UUID, label: Mapping[str, Any], lease: float) -> dict[str, Any]:
    """The parameters of BEGUN; `label` names the worker for people, the lease is in seconds."""
    return {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "label": orjson.dumps(label).decode(),
        "lease": float(lease),
    }


def payload(text: str) -> Any:
    """The payload as it was enqueued: of whole numbers over 64 bits orjson would make floats, or refuse them."""
    return json.loads(text) if has_long_number(text) else orjson.loads(text)


def place(row: Sequence[Any]) -> tuple[Any, ...]:
    """By what rows of SEATED are put into order: the best first."""
    return -row[COLUMNS], row[COLUMNS + 1], row[0]


def as_claims(rows: Sequence[Sequence[Any]]) -> list[Claim]:
    """The rows of SEATED, the best first."""
    claims = []
    for row in sorted(rows, key=place):
        values = list(row[:COLUMNS])
        values[4] = payload(row[4])
        values[14] = tuple(row[14])
        claims.append(Claim(*values, *row[KEYED:]))
    return claims
