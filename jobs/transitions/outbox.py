"""The outbox: whoever makes a job Enqueued leaves its message for the broker in the same statement; relays take it on.

A relay leases a batch, publishes it outside any transaction and deletes what the broker confirmed, so that a crash at
any point publishes a message twice at most, and a duplicate is dropped by its token.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.conf import conf
from jobs.text import clean
from jobs.transitions.sql import OUTBOX, WORK, arrays, fetch, in_transaction, unnest

ERROR_LENGTH = 500  # characters of what the broker said
STACK_LENGTH = 16_000  # characters of a stack trace in a letter: brokers limit a message's size


def dispatch(source: str) -> str:
    """The SQL that leaves the message of each job of `source`, a CTE before it, that is Enqueued now.

    `source` has id, state, dispatch_id, queue and priority as they were just written. Where no broker carries the work
    the parameter `broker` is false, and nothing of `source` is read.
    """
    return f"""
, dispatched AS (
    INSERT INTO turno.outbox_messages (job_id, dispatch_id, queue, priority)
    SELECT id, dispatch_id, queue, priority FROM {source}
    WHERE %(broker)s::bool AND state = 'Enqueued' ORDER BY id
)"""


# For who listens to the broker: `letters` are rows of dead letters as they were just written.
LETTERED = f"""
, lettered AS (
    INSERT INTO turno.outbox_messages (job_id, kind, queue, body)
    SELECT job_id, 'dead_letter', queue, jsonb_build_object(
        'v', 1, 'letter', id, 'job', job_id, 'type', type, 'queue', queue, 'failure_kind', failure_kind,
        'error_type', error_type, 'error_message', error_message, 'stack', left(stack, {STACK_LENGTH}),
        'fingerprint', fingerprint, 'attempts', attempts, 'created_at', created_at
    )
    FROM letters WHERE %(broker)s::bool ORDER BY id
)"""

# The longest due first: what is new since it was written, what failed since its time came, what a relay took and did
# not bring to its end since its lease ended. A row in back-off is in nobody's way. What is no longer Enqueued with that
# token was claimed, cancelled or deferred, and never will be again, since each entry draws a new token: nobody needs
# its message. A scalar subquery, since no plan makes one pass over all jobs of it.
LEASE = """
WITH due AS MATERIALIZED (
    SELECT id FROM (
        SELECT id, since FROM (
            SELECT id, locked_until AS since FROM turno.outbox_messages
            WHERE locked_until < now() ORDER BY locked_until, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
        ) AS again
        UNION ALL
        SELECT id, since FROM (
            SELECT id, created_at AS since FROM turno.outbox_messages
            WHERE locked_until IS NULL ORDER BY locked_until, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
        ) AS new
    ) AS both_of_them
    ORDER BY since, id LIMIT %(limit)s
), picked AS MATERIALIZED (
    SELECT o.id, o.kind <> 'dispatch' OR COALESCE((
        SELECT true FROM turno.jobs AS j
        WHERE j.id = o.job_id AND j.dispatch_id = o.dispatch_id AND COALESCE(j.state, '') = 'Enqueued'
    ), false) AS counts
    FROM turno.outbox_messages AS o WHERE o.id = ANY (ARRAY(SELECT id FROM due))
), stale AS (
    DELETE FROM turno.outbox_messages WHERE id = ANY (ARRAY(SELECT id FROM picked WHERE NOT counts)) RETURNING id
), leased AS (
    UPDATE turno.outbox_messages
    SET lock_id = %(lock_id)s::uuid, locked_until = now() + %(lease)s::float8 * interval '1 second'
    WHERE id = ANY (ARRAY(SELECT id FROM picked WHERE counts))
    RETURNING id, job_id, kind, dispatch_id, queue, priority, body
)
SELECT s.dropped, l.id, l.job_id, l.kind, l.dispatch_id, l.queue, l.priority, l.body
FROM (SELECT count(*) AS dropped FROM stale) AS s LEFT JOIN leased AS l ON true ORDER BY l.id
"""
# Rows that are still this lease's. What somebody has locked is skipped: its job is being deleted, or another relay
# takes what we were too late for. So nobody waits here, whatever others hold.
MINE = """
WITH mine AS MATERIALIZED (
    SELECT id, job_id, dispatch_id FROM turno.outbox_messages
    WHERE id = ANY(%(ids)s::bigint[]) AND lock_id = %(lock_id)s::uuid ORDER BY id FOR UPDATE SKIP LOCKED
)
"""
CONFIRM = f"""
{MINE}, waiting AS MATERIALIZED (
    SELECT j.id FROM mine AS m JOIN turno.jobs AS j ON j.id = m.job_id AND j.dispatch_id = m.dispatch_id
    WHERE j.id = ANY (ARRAY(SELECT job_id FROM mine)) AND COALESCE(j.state, '') = 'Enqueued'
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
), announced AS (
    UPDATE turno.jobs SET announced_at = now() WHERE id = ANY (ARRAY(SELECT id FROM waiting))
), gone AS (
    DELETE FROM turno.outbox_messages WHERE id = ANY (ARRAY(SELECT id FROM mine)) RETURNING id
)
SELECT count(*) FROM gone
"""
# The jitter is a row's own, so that rows that failed together come back apart and each one's wait still doubles.
POSTPONE = f"""
{MINE}
UPDATE turno.outbox_messages AS o
SET failures = o.failures + 1, last_error = i.error, lock_id = NULL,
    locked_until = now() + LEAST(
        %(cap)s::float8, %(base)s::float8 * power(2, LEAST(o.failures, %(doublings)s::int))
    ) * (1 - mod(o.id, 16) / 64.0) * interval '1 second'
FROM mine AS m JOIN unnest(%(ids)s::bigint[], %(errors)s::text[]) AS i(id, error) ON i.id = m.id
WHERE o.id = m.id
"""
RETURN = f"""
{MINE}
UPDATE turno.outbox_messages AS o SET lock_id = NULL, locked_until = NULL FROM mine AS m WHERE o.id = m.id
"""
# The jobs that messages name (ids, tokens), locked: those that are Enqueued with just that token. Their rows are waited
# for, since the messages are gone after this.
NAMED_JOBS = f"""
    SELECT j.id FROM {unnest("i", {"ids": "uuid", "tokens": "uuid"})}
    JOIN turno.jobs AS j ON j.id = i.ids AND j.dispatch_id = i.tokens
    WHERE j.id = ANY (%(ids)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
    ORDER BY j.id FOR NO KEY UPDATE OF j
"""


class OutboxRow(NamedTuple):
    """A row that a relay has leased. `token` is None and `body` the letter where `kind` is "dead_letter"."""

    id: int
    job: UUID
    kind: str
    token: UUID | None
    queue: str
    priority: int
    body: dict[str, Any]


class Leased(NamedTuple):
    """What a relay has got, oldest row first, and how many rows it met that nobody needed any more."""

    messages: list[OutboxRow]
    dropped: int


def broker() -> bool:
    """Whether a broker carries the work, so that messages are written: the verbs' parameter `broker`."""
    return conf().messaging.broker


def enqueued(queues: Iterable[str], *, letters: bool = False) -> list[tuple[str, str]]:
    """What is announced once jobs of these queues are Enqueued, and when `letters` were written: (channel, payload)."""
    notices = [(WORK, queue) for queue in set(queues)]
    return [*notices, (OUTBOX, "")] if (notices or letters) and broker() else notices


def lease_outbox(*, limit: int, lock_id: UUID, lease: float, using: str = "default") -> Leased:
    """Take at most `limit` messages for `lease` seconds, the longest due first; `lock_id` is new at each call.

    Messages of jobs that do not wait under that token any more are deleted instead. Call again at once while messages
    and dropped ones together are as many as `limit`.
    """
    params = {"limit": limit, "lock_id": lock_id, "lease": float(lease)}

    def work(cursor: CursorWrapper) -> Leased:
        rows = fetch(cursor, LEASE, params)
        return Leased([_message(row[1:]) for row in rows if row[1] is not None], rows[0][0])

    return in_transaction(using, work, single=True)


def _message(row: Sequence[Any]) -> OutboxRow:
    id_, job, kind, token, queue, priority, body = row
    letter = orjson.loads(body) if isinstance(body, str) else body
    return OutboxRow(id_, job, kind, token, queue, priority, letter)


def confirm_outbox(ids: Sequence[int], *, lock_id: UUID, using: str = "default") -> int:
    """Delete messages that the broker has confirmed, and note on jobs that still wait that they were announced.

    Only what is still leased under `lock_id`; returns how many those were.
    """

    def work(cursor: CursorWrapper) -> int:
        return fetch(cursor, CONFIRM, {"ids": list(ids), "lock_id": lock_id})[0][0]

    return in_transaction(using, work, single=True) if ids else 0


def postpone_outbox(
    refused: Sequence[tuple[int, str]], *, lock_id: UUID, base: float, cap: float, using: str = "default"
) -> int:
    """Put off messages (id, error) that the broker refused: for `base` seconds, doubled at each failure, at most `cap`.

    Only what is still leased under `lock_id`; returns how many those were.
    """
    params = arrays(("ids", "errors"), [(id_, clean(error, ERROR_LENGTH, one_line=True)) for id_, error in refused])
    # Counted before the power, so that no number of failures overflows it.
    doublings = math.ceil(math.log2(cap / base)) if cap > base else 0
    more = {"lock_id": lock_id, "base": float(base), "cap": float(cap), "doublings": doublings}
    return _updated(POSTPONE, params | more, using) if refused else 0


def return_outbox(ids: Sequence[int], *, lock_id: UUID, using: str = "default") -> int:
    """Give a lease back, for messages that could not be published because there was no broker: no failure is counted.

    Only what is still leased under `lock_id`; returns how many those were.
    """
    return _updated(RETURN, {"ids": list(ids), "lock_id": lock_id}, using) if ids else 0


def _updated(statement: str, params: dict[str, Any], using: str) -> int:
    def work(cursor: CursorWrapper) -> int:
        cursor.execute(statement, params)
        return cursor.rowcount

    return in_transaction(using, work, single=True)
