"""Enqueued -> Scheduled without an attempt: what a message named and its worker could not start for the moment.

By id and token, waiting for the row as a claim does: the message is acknowledged after this, and names the job no more.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.transitions.gates import LET_GO
from jobs.transitions.outbox import NAMED_JOBS
from jobs.transitions.sql import DUE, arrays, fetch, in_transaction, notify

SHORTEST_WAIT = 1.0  # seconds for a lock that is held elsewhere, and as much again by chance
DEFER = f"""
WITH named AS MATERIALIZED ({NAMED_JOBS}), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Scheduled', dispatch_id = NULL, announced_at = NULL, waiting_for = 'lock',
        run_at = now() + %(wait)s::float8 * (1 + random()) * interval '1 second'
    FROM named AS n WHERE j.id = n.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id, j.concurrency_key, j.type
), {LET_GO}, history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Enqueued', 'Scheduled', 'lock_busy' FROM moved ORDER BY id
)
SELECT id FROM moved WHERE (SELECT count(*) FROM told) >= 0 ORDER BY id
"""


def defer(pairs: Sequence[tuple[UUID, UUID]], *, using: str = "default") -> set[UUID]:
    """Put off jobs (id, dispatch token) whose lock is held elsewhere, for 1 to 2 seconds; answers those it did.

    The others are Enqueued with that token no more.
    """

    def work(cursor: CursorWrapper) -> set[UUID]:
        moved = {id_ for (id_,) in fetch(cursor, DEFER, arrays(("ids", "tokens"), pairs) | {"wait": SHORTEST_WAIT})}
        notify(cursor, DUE, [""] if moved else [])
        return moved

    return in_transaction(using, work) if pairs else set()
