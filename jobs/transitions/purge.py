"""Retention: finished jobs leave in small batches, oldest first; a pending dead letter or a waiting child keeps one."""

from django.db.backends.utils import CursorWrapper

from jobs.states import FINAL, State
from jobs.transitions.sql import in_transaction

# The state stands in the text, so that a prepared plan may use the partial index. The ids come as one array, so that no
# plan runs the inner query twice (it would delete more than `limit`) or reads the table for so few rows. OFFSET 0: the
# children are looked up job by job.
PURGE = """
DELETE FROM turno.jobs WHERE id = ANY (ARRAY(
    SELECT id FROM turno.jobs AS j
    WHERE state = '{state}' AND finished_at < now() - %(age)s::float8 * interval '1 second'
      AND NOT EXISTS (
        SELECT FROM turno.dead_letters AS d
        WHERE d.job_id = j.id AND d.resolved_at IS NULL
          AND d.created_at > now() - %(letters)s::float8 * interval '1 second'
      ) AND NOT EXISTS (
        SELECT FROM turno.job_dependencies AS w
        CROSS JOIN LATERAL (SELECT waiting_for FROM turno.jobs WHERE id = w.child_id OFFSET 0) AS c
        WHERE w.parent_id = j.id AND c.waiting_for = 'parents' OFFSET 0
      )
    ORDER BY finished_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
"""


def purge(state: State, *, age: float, letters: float, limit: int, using: str = "default") -> int:
    """Delete at most `limit` jobs that ended in `state` more than `age` seconds ago; returns how many.

    A job with a pending dead letter stays until the letter is `letters` seconds old, one that a child names which waits
    for its parents stays as long as that waits. Raises ValueError for a state
    that is not final.
    """
    if state not in FINAL:
        raise ValueError(f"{state} is not final")

    def work(cursor: CursorWrapper) -> int:
        params = {"age": float(age), "letters": float(letters), "limit": limit}
        cursor.execute(PURGE.format(state=State(state)), params)
        return cursor.rowcount

    return in_transaction(using, work)
