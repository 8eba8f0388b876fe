"""New jobs that nothing keeps from running at once, which most are: the same INSERT without all that others need.

No instant, no key, no parents, and no other job that could stand in the way. What it says of a new job is what
`insert.INSERT` says of one that is ready and not parked.
"""

from operator import attrgetter
from typing import Any

from jobs.transitions.keys import LIMITED, RATED
from jobs.transitions.outbox import dispatch
from jobs.transitions.sql import OUTBOX, WORK

_asks = attrgetter(
    "run_at",
    "delay",
    "unique_key",
    "idempotency_key",
    "recurring_job_id",
    "concurrency_key",
    "after",
)
NOTHING = (None,) * 7


def is_plain(row: Any) -> bool:
    """Whether a new job (`insert.NewJob`) asks for nothing of that."""
    return bool(_asks(row) == NOTHING)


# Answers with a row at least; with none where one of the `types` (their names, which have no blanks in them, one after
# the other) has a limit or a rate, and inserts nothing then.
def _plain(dispatched: str = "", told: str = "") -> str:
    return f"""
WITH inserted AS (
    INSERT INTO turno.jobs (
        id, type, queue, payload, priority, max_attempts, timeout, at_most_once, owner, origin, tags, state,
        dispatch_id, enqueued_at, created_at
    )
    SELECT id, type, queue, payload,
        COALESCE(priority, (SELECT q.default_priority FROM turno.queues AS q WHERE q.name = i.queue), 0),
        max_attempts, timeout, at_most_once, owner, origin, tags, 'Enqueued', gen_random_uuid(), statement_timestamp(),
        statement_timestamp()
    FROM json_to_recordset(%(rows)s::json) AS i(
        id uuid, type text, queue text, payload jsonb, priority int, max_attempts int, timeout float8,
        at_most_once bool, owner text, origin text, tags text[]
    )
    WHERE NOT EXISTS ({LIMITED} AND name = ANY (string_to_array(%(types)s::text, ' ')))
      AND NOT EXISTS ({RATED} WHERE type = ANY (string_to_array(%(types)s::text, ' ')))
    RETURNING id, state, dispatch_id, queue, priority, owner
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, actor)
    SELECT id, NULL, state, 'created', owner FROM inserted
) {dispatched}
SELECT pg_notify('{WORK}', queue) FROM (SELECT DISTINCT queue FROM inserted) AS woken
{told}"""


PLAIN = _plain()
PLAIN_DISPATCHED = _plain(
    dispatch("inserted"), f"UNION ALL SELECT pg_notify('{OUTBOX}', '') WHERE EXISTS (SELECT FROM inserted)"
)
