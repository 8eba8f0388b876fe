"""Enqueued jobs whose message is gone are announced again, with the same token: a duplicate is dropped by it.

Nothing here tells for sure that a message is gone. The worst that a wrong guess does is a message too many.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.queuewalk import LEVELS, MANY, NAMES
from jobs.transitions.outbox import NAMED_JOBS, dispatch
from jobs.transitions.sql import OUTBOX, arrays, fetch, in_transaction, notify

AGAIN = 600.0  # seconds within which one entry into the queue is announced again once at most
WAITING_QUEUES = f"""
WITH RECURSIVE {NAMES}
SELECT queue FROM names
"""
# Its message was confirmed so long ago; or it never had one, which happens to what was enqueued before there was a
# broker, and where the confirmation met a row that somebody had locked.
ANNOUNCED = """
j.state = 'Enqueued' AND j.queue = %(queue)s
AND COALESCE(j.announced_at, j.enqueued_at) < now() - %(age)s::float8 * interval '1 second'
AND NOT EXISTS (
    SELECT FROM turno.outbox_messages AS o WHERE o.job_id = j.id AND o.dispatch_id = j.dispatch_id
)
"""
COUNT = f"""
SELECT count(*) FROM (
    SELECT FROM turno.jobs AS j WHERE {ANNOUNCED} ORDER BY j.priority DESC LIMIT %(most)s
) AS announced
"""
# Not within that span of the last time, unless that was another entry's.
NOT_LATELY = f"""
(j.reannounced_at IS NULL OR j.reannounced_at < GREATEST(now() - interval '{AGAIN} seconds', j.enqueued_at))
"""
WRITTEN = f"""
, again AS (
    UPDATE turno.jobs AS j SET reannounced_at = now()
    FROM locked AS l WHERE j.id = l.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority
) {dispatch("again")}
SELECT count(*) FROM again
"""
# The oldest of each priority by the index of the claims, then the oldest of those. What is locked is being claimed or
# cancelled, and needs no message.
OLDEST = f"""
WITH oldest AS MATERIALIZED (
    SELECT of_it.id FROM {LEVELS} CROSS JOIN LATERAL (
        SELECT j.id, j.enqueued_at FROM turno.jobs AS j
        WHERE j.priority = p.priority AND {ANNOUNCED} AND {NOT_LATELY}
        ORDER BY j.enqueued_at, j.id LIMIT %(limit)s
    ) AS of_it
    ORDER BY of_it.enqueued_at, of_it.id LIMIT %(limit)s
), locked AS MATERIALIZED (
    SELECT j.id FROM turno.jobs AS j
    WHERE j.id = ANY (ARRAY(SELECT id FROM oldest)) AND COALESCE(j.state, '') = 'Enqueued' AND {NOT_LATELY}
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
) {WRITTEN}
"""
# The broker has given these messages up and holds them no more. So the rows are waited for, and it does not matter when
# they were announced last.
NAMED = f"""
WITH locked AS MATERIALIZED ({NAMED_JOBS}) {WRITTEN}
"""


def waiting_queues(*, using: str = "default") -> list[str]:
    """The queues that have Enqueued jobs, by name; at most 500."""

    def work(cursor: CursorWrapper) -> list[str]:
        return [queue for (queue,) in fetch(cursor, WAITING_QUEUES, {"queues": MANY})]

    return in_transaction(using, work)


def announced(queue: str, *, age: float, most: int, using: str = "default") -> int:
    """How many jobs of the queue are Enqueued, and were announced more than `age` seconds ago; counted up to `most`.

    A job whose message still stands in the outbox is none of them.
    """
    params = {"queue": queue, "age": float(age), "most": most}
    return in_transaction(using, lambda cursor: fetch(cursor, COUNT, params)[0][0])


def reannounce_oldest(queue: str, *, age: float, limit: int, using: str = "default") -> int:
    """Write the messages of the queue's oldest jobs anew, of those that `announced` counts; returns how many.

    At most `limit`, and none whose present entry into the queue was announced again within the last ten minutes.
    """
    return _written(OLDEST, {"queue": queue, "age": float(age), "limit": limit}, using)


def reannounce(pairs: Sequence[tuple[UUID, UUID]], *, using: str = "default") -> int:
    """Write anew the messages of jobs (id, dispatch token) that are Enqueued with that token; returns how many.

    For messages that the broker has set aside and that were taken off there.
    """
    return _written(NAMED, arrays(("ids", "tokens"), pairs), using) if pairs else 0


def _written(statement: str, params: dict[str, Any], using: str) -> int:
    def work(cursor: CursorWrapper) -> int:
        count: int = fetch(cursor, statement, params | {"broker": True})[0][0]
        notify(cursor, OUTBOX, [""] if count else [])
        return count

    return in_transaction(using, work)
