"""Recovery: one predicate on the job's row, never a join with workers, never an age (law 3)."""

from random import Random
from uuid import UUID

from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.outcomes import Ending
from jobs.transitions import keys
from jobs.transitions.finish import Finished
from jobs.transitions.losses import LOST, LostRow, PolicyOf, end_lost, lost_ending
from jobs.transitions.probes import probed
from jobs.transitions.sql import fetch, in_transaction

OVERDUE = "j.lease_expires_at < now() - %(grace)s::float8 * interval '1 second'"
LOCK_KEYS, LOCK_PROBED = keys.of_running(OVERDUE), probed(OVERDUE)
# The oldest leases first; a row that somebody has locked is skipped, so that it starves no other. Nor does one whose
# end the database refused: the caller remembers it.
EXPIRED = f"""
{LOST} AS j
WHERE state = 'Processing' AND {OVERDUE}
  AND NOT id = ANY(%(refused)s::uuid[])
ORDER BY lease_expires_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def expire(
    *,
    grace: float,
    limit: int,
    policy_of: PolicyOf,
    lost_limit: int,
    rng: Random,
    refused: set[UUID] | None = None,
    using: str = "default",
) -> list[Finished]:
    """End the executions whose lease ended more than `grace` seconds ago: WorkerLost, at most `limit` a call.

    `policy_of` gives the retry policy of a type. Jobs of `refused` are not looked at, and those whose end the database
    refuses are added to it. Call again at once while the answer is as long as `limit`, or `refused` has grown.
    """

    def ending(row: LostRow) -> Ending:
        text = _("The worker %(worker)s stopped answering.") % {"worker": row.worker}
        policy = policy_of(row.type)
        return lost_ending(row, text=text, host=row.host, policy=policy, lost_limit=lost_limit, rng=rng)

    bad = set[UUID]() if refused is None else refused

    def work(cursor: CursorWrapper) -> list[Finished]:
        params = {"grace": float(grace), "limit": limit}
        locked = {key for (key,) in fetch(cursor, LOCK_KEYS, params)}
        cursor.execute(LOCK_PROBED, params)
        return end_lost(cursor, EXPIRED, params, ending, refused=bad, locked=locked, using=using)

    return in_transaction(using, work)
