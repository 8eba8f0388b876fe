"""Types that are gone for good: their row, their rate and their breaker go when nobody has served them for long.

Such a row is a gate, or belongs to one, so it goes under its lock, and after a second look. A job of the type that
comes after all makes the row anew, as a worker does that has the type: it says so at its start, before it claims.
"""

from collections.abc import Callable

from django.db.backends.utils import CursorWrapper

from jobs import quick
from jobs.transitions import keys
from jobs.transitions.sql import fetch, in_transaction

KEPT = 90 * 86_400.0  # seconds
# A type that a job or a schedule has is needed. One step of the index, in its order: asked for a job of just this type,
# a plan would look for the first from end to end where nearly all are of one.
NEEDED = """(
    t.name IS NOT DISTINCT FROM (
        SELECT j.type FROM turno.jobs AS j WHERE j.type >= t.name ORDER BY j.type, j.id DESC LIMIT 1
    )
    OR EXISTS (SELECT FROM turno.recurring_jobs AS r WHERE r.type = t.name)
)"""
OLD = f"""
    t.limits_by IS NULL AND COALESCE(t.last_served_at, t.first_seen_at) < now() - %(age)s::float8 * interval '1 second'
    AND NOT {NEEDED}
"""
TYPES = f"SELECT t.name FROM turno.job_types AS t WHERE {OLD} ORDER BY t.name LIMIT %(limit)s"
HOLD_TYPES = f"""
SELECT t.name FROM turno.job_types AS t WHERE t.name = ANY(%(names)s::text[]) AND {OLD}
ORDER BY t.name FOR UPDATE SKIP LOCKED
"""
FORGET_RATES = """
DELETE FROM turno.rates WHERE type = ANY (ARRAY(
    SELECT type FROM turno.rates WHERE type = ANY(%(names)s::text[]) ORDER BY type FOR UPDATE SKIP LOCKED
))
"""
FORGET_TYPES = """
DELETE FROM turno.job_types AS t WHERE t.name = ANY(%(names)s::text[])
  AND NOT EXISTS (SELECT FROM turno.rates AS r WHERE r.type = t.name)
"""
# A breaker that closed long ago is as good as none.
CLOSED = f"""
    c.state = 'closed'
    AND COALESCE(c.closed_at, c.opened_at, '-infinity') < now() - %(age)s::float8 * interval '1 second'
    AND NOT {NEEDED.replace("t.name", "c.type")}
"""
FORGET_CIRCUITS = f"""
DELETE FROM turno.circuits WHERE type = ANY (ARRAY(
    SELECT c.type FROM turno.circuits AS c WHERE {CLOSED} ORDER BY c.type LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
"""


def forget_types(*, age: float = KEPT, limit: int, using: str = "default") -> int:
    """Delete at most `limit` types, with their rates, that no worker has served for `age` seconds; returns how many.

    Types of which there is a job or a schedule stay, and those whose limits somebody has set. What is locked is passed
    over.
    """

    def work(cursor: CursorWrapper) -> int:
        quick.limit(cursor)
        params = {"age": float(age), "limit": limit}
        names = [name for (name,) in fetch(cursor, TYPES, params)]
        # The key of a type before its row, as whoever changes a limit has it; a type without limits has none.
        wanted = [(keys.TYPE, name) for name in names]
        locked = keys.lock_free(cursor, wanted)
        held = keys.find(cursor, wanted).keys() - locked.keys()
        free = [name for name in names if (keys.TYPE, name) not in held]
        names = [name for (name,) in fetch(cursor, HOLD_TYPES, params | {"names": free})] if free else []
        if not names:
            return 0
        cursor.execute(FORGET_RATES, {"names": names})
        cursor.execute(FORGET_TYPES, {"names": names})
        return cursor.rowcount

    return in_transaction(using, work)


def forget_circuits(*, age: float = KEPT, limit: int, using: str = "default") -> int:
    """Delete at most `limit` breakers that closed more than `age` seconds ago, of types without a job or a schedule."""
    return in_transaction(using, _deleting(FORGET_CIRCUITS, {"age": float(age), "limit": limit}))


def _deleting(statement: str, params: dict[str, float]) -> Callable[[CursorWrapper], int]:
    def work(cursor: CursorWrapper) -> int:
        quick.limit(cursor)
        cursor.execute(statement, params)
        return cursor.rowcount

    return work
