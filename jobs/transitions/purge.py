"""Retention: finished jobs leave in small batches, oldest first; a pending dead letter or a waiting child keeps one.

Jobs are passed over where somebody has them locked. What hangs on them goes before them, so many rows a statement: a
job may have tens of thousands of log lines. Rows that two jobs share are locked in one order, since two who delete may
each have one of the two.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from time import monotonic
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs import quick
from jobs.states import FINAL, State
from jobs.transitions.sql import fetch, in_transaction

# Jobs that are looked at for each that may go: where most are kept, no call looks at all of them.
LOOKED_AT = 10
# What hangs on the jobs of a batch: executions for each job, and rows that one statement deletes, as many as all of
# these have of one kind, or LEAST_ROWS. Lines and dependencies beyond that go in parts, each a transaction of its own;
# of its history a job that lives on must have all or nothing.
EXECUTIONS = 10
ROWS = 4 * EXECUTIONS
LEAST_ROWS = 2000
LINES = "job_logs"
LONGEST = 5.0  # seconds of all parts of one call: whoever calls has other things to do

# Of a job `j`: nobody needs it any more. OFFSET 0: the children are looked up job by job.
UNNEEDED = """NOT EXISTS (
    SELECT FROM turno.dead_letters AS d
    WHERE d.job_id = j.id AND d.resolved_at IS NULL
      AND d.created_at > now() - %(letters)s::float8 * interval '1 second'
) AND NOT EXISTS (
    SELECT FROM turno.job_dependencies AS w
    CROSS JOIN LATERAL (SELECT waiting_for FROM turno.jobs WHERE id = w.child_id OFFSET 0) AS c
    WHERE w.parent_id = j.id AND c.waiting_for = 'parents' OFFSET 0
)"""
# The state stands in the text, so that a prepared plan may use the partial index. From a place on: the next call looks
# neither at those that were kept again, nor at the entries of those that have just gone.
OLD = """
    SELECT id, finished_at, executions FROM turno.jobs
    WHERE state = '{state}' AND finished_at < now() - %(age)s::float8 * interval '1 second'
      AND (finished_at, id) > (%(ended)s::timestamptz, %(after)s::uuid)
    ORDER BY finished_at, id
"""
# No order outside: they come as they are read, and no more of them are read than are taken.
LOOK = f"""
WITH old AS MATERIALIZED ({OLD} LIMIT %(looked_at)s)
SELECT finished_at, id, executions FROM (SELECT j.*, {UNNEEDED} AS free FROM old AS j OFFSET 0) AS looked
WHERE free LIMIT %(limit)s
"""
# The last that was looked at, where there are as many.
LAST = f"SELECT finished_at, id FROM ({OLD} OFFSET %(looked_at)s - 1 LIMIT 1) AS last"
HOLD = """
SELECT id FROM turno.jobs
WHERE id = ANY(%(ids)s::uuid[]) AND COALESCE(state, '') = %(state)s::text
  AND finished_at < now() - %(age)s::float8 * interval '1 second'
ORDER BY id FOR UPDATE SKIP LOCKED
"""
# The look before saw what was committed before the lock: a child may have come up to it.
STILL = f"SELECT j.id FROM turno.jobs AS j WHERE j.id = ANY(%(ids)s::uuid[]) AND {UNNEEDED}"
HANGING = (LINES, "job_state_changes", "job_attempts", "job_artifacts")
HISTORY = {
    table: f"""
DELETE FROM turno.{table} WHERE id = ANY (ARRAY(
    SELECT h.id FROM unnest(%(ids)s::uuid[]) AS i(job) CROSS JOIN LATERAL (
        SELECT id FROM turno.{table} WHERE job_id = i.job OFFSET 0
    ) AS h
    LIMIT %(rows)s
))
"""
    for table in HANGING
}
UNLINK = """
DELETE FROM turno.job_dependencies WHERE id = ANY (ARRAY(
    SELECT id FROM turno.job_dependencies WHERE id = ANY (ARRAY(
        SELECT d.id FROM unnest(%(ids)s::uuid[]) AS i(job) CROSS JOIN LATERAL (
            SELECT id FROM turno.job_dependencies WHERE child_id = i.job OFFSET 0
        ) AS d
        UNION
        SELECT d.id FROM unnest(%(ids)s::uuid[]) AS i(job) CROSS JOIN LATERAL (
            SELECT id FROM turno.job_dependencies WHERE parent_id = i.job OFFSET 0
        ) AS d
        LIMIT %(rows)s
    ))
    ORDER BY id FOR UPDATE
))
"""
DELETE = "DELETE FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[])"


class Place(NamedTuple):
    """Where a call stopped: the end and the id of a job."""

    ended: datetime | str
    id: UUID


FIRST = Place("-infinity", UUID(int=0))


class Purged(NamedTuple):
    """How many jobs were deleted, and where to go on; `after` None: there is no older job to look at."""

    jobs: int
    after: Place | None


def purge(
    state: State, *, age: float, letters: float, limit: int, after: Place = FIRST, using: str = "default"
) -> Purged:
    """Delete at most `limit` jobs that ended in `state` more than `age` seconds ago, from `after` on.

    A job with a pending dead letter stays until the letter is `letters` seconds old, one that a child names which waits
    for its parents stays as long as that waits. Raises ValueError for a state that is not final, and OperationalError
    (`quick.too_slow`) when a statement took too long: what is gone by then is gone, and a smaller batch may do. One
    whose lines take longer than LONGEST is not done: the next call goes on with the same jobs.
    """
    if state not in FINAL:
        raise ValueError(f"{state} is not final")
    params: dict[str, Any] = {"state": str(state), "age": float(age), "letters": float(letters)}
    params |= {"ended": after.ended, "after": after.id, "limit": limit, "looked_at": limit * LOOKED_AT}
    batch, last = in_transaction(using, lambda cursor: _look(cursor, state, params))
    params |= {"ids": [id_ for _, id_, _ in batch], "rows": max(limit * ROWS, LEAST_ROWS)}
    gone, until = None if batch else 0, monotonic() + LONGEST
    while gone is None:
        if monotonic() > until:
            return Purged(0, after)
        gone = in_transaction(using, lambda cursor: _purge(cursor, params))
    return Purged(gone, None if last is None else Place(*last))


def beyond(state: State, *, age: float, after: Place, using: str = "default") -> Place:
    """The place behind the next job that ended in `state` more than `age` seconds ago: FIRST where there is none.

    For who could not delete that one, which must keep no other from going.
    """
    params = {"age": float(age), "ended": after.ended, "after": after.id, "looked_at": 1}
    found = in_transaction(using, lambda cursor: fetch(cursor, LAST.format(state=State(state)), params))
    return Place(*found[0]) if found else FIRST


def unlink(cursor: CursorWrapper, ids: Sequence[UUID], rows: int | None = None) -> bool:
    """Delete the dependencies of jobs that are locked here and about to go, `rows` at most; whether none is left.

    Call it before any statement that deletes jobs: their foreign keys would take the rows in no order.
    """
    cursor.execute(UNLINK, {"ids": list(ids), "rows": rows})
    return rows is None or cursor.rowcount < rows


def _look(
    cursor: CursorWrapper, state: State, params: dict[str, Any]
) -> tuple[list[tuple[datetime, UUID, int]], tuple[datetime, UUID] | None]:
    """The jobs of the next batch (end, id, executions), and the last that was looked at; None: no more are old."""
    quick.limit(cursor)
    free = sorted(fetch(cursor, LOOK.format(state=State(state)), params))
    totals = accumulate(max(1, executions) for *_, executions in free)
    fit = sum(total <= params["limit"] * EXECUTIONS for total in totals)
    batch = free[: max(1, fit)]
    if len(batch) < len(free) or len(batch) == params["limit"]:
        return batch, batch[-1][:2]
    last = fetch(cursor, LAST.format(state=State(state)), params)
    return batch, last[0] if last else None


def _purge(cursor: CursorWrapper, params: dict[str, Any]) -> int | None:
    """One transaction; None: there is more of what hangs on them."""
    quick.limit(cursor)
    held = [id_ for (id_,) in fetch(cursor, HOLD, params)]
    ids = [id_ for (id_,) in fetch(cursor, STILL, params | {"ids": held})] if held else []
    if not ids:
        return 0
    for table in HANGING:
        cursor.execute(HISTORY[table], params | {"ids": ids})
        while cursor.rowcount == params["rows"]:
            if table == LINES:
                return None
            cursor.execute(HISTORY[table], params | {"ids": ids})
    if not unlink(cursor, ids, params["rows"]):
        return None
    cursor.execute(DELETE, {"ids": ids})
    return cursor.rowcount
