"""Retention of keys: the row of one that nobody holds and nobody waits for goes, under its lock and in small batches.

Whoever waited for the row meanwhile finds none and makes it anew (`keys.lock`). A job that an open transaction parks at
the key is not seen here: it is told of after its commit, and whoever opens the gate then makes the row too.
"""

from django.db.backends.utils import CursorWrapper

from jobs import quick
from jobs.serving import IN_QUEUE
from jobs.transitions.sql import fetch, in_transaction

# OFFSET 0: looked up key by key, and not by a pass over all jobs. A type with a limit keeps its row.
UNUSED = f"""
NOT EXISTS (SELECT FROM turno.concurrency_slots AS s WHERE s.key_id = k.id OFFSET 0)
AND CASE k.kind WHEN 'key' THEN NOT EXISTS (
    SELECT FROM turno.jobs AS w WHERE w.waiting_for = 'concurrency_key' AND w.gate = k.value OFFSET 0
) AND NOT EXISTS (
    SELECT FROM turno.jobs AS e WHERE {IN_QUEUE} AND e.concurrency_key = k.value OFFSET 0
) ELSE NOT EXISTS (
    SELECT FROM turno.jobs AS w WHERE w.waiting_for = 'type_limit' AND w.gate = k.value OFFSET 0
) AND NOT EXISTS (
    SELECT FROM turno.job_types AS t WHERE t.name = k.value AND t.max_running IS NOT NULL OFFSET 0
) END
"""
# Where so many are in use that one call can't look at all of them, it begins anywhere.
START = """
SELECT CASE WHEN count(*) > %(looked_at)s THEN (
    SELECT min(id) + floor(random() * (max(id) - min(id)))::bigint FROM turno.concurrency_keys
) ELSE 0 END FROM (SELECT FROM turno.concurrency_keys LIMIT %(looked_at)s + 1) AS k
"""
FORGET = f"""
SELECT k.id FROM turno.concurrency_keys AS k
WHERE k.id = ANY (ARRAY(
    SELECT id FROM turno.concurrency_keys WHERE id >= %(start)s::bigint ORDER BY id LIMIT %(looked_at)s
)) AND k.created_at < now() - %(age)s::float8 * interval '1 second' AND {UNUSED}
ORDER BY k.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
# The look before saw what was committed before the lock: somebody may have taken a slot, or parked, up to it.
FORGOTTEN = f"DELETE FROM turno.concurrency_keys AS k WHERE k.id = ANY(%(ids)s::bigint[]) AND {UNUSED}"
KEPT = 3600.0  # seconds: a key that comes again within the hour finds its row
LOOKED_AT = 10  # keys that are looked at for each that may go


def forget_keys(*, age: float = KEPT, limit: int, using: str = "default") -> int:
    """Delete at most `limit` keys that were made more than `age` seconds ago and that nobody needs; returns how many.

    A key that somebody has locked is skipped.
    """

    def work(cursor: CursorWrapper) -> int:
        quick.limit(cursor)
        params = {"age": float(age), "limit": limit, "looked_at": limit * LOOKED_AT}
        [(start,)] = fetch(cursor, START, params)
        ids = [id_ for (id_,) in fetch(cursor, FORGET, params | {"start": start})]
        if not ids:
            return 0
        cursor.execute(FORGOTTEN, {"ids": ids})
        return cursor.rowcount

    return in_transaction(using, work)
