"""Recovery: one predicate on the job's row, never a join with workers, never an age (law 3)."""

from random import Random

from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.outcomes import Ending
from jobs.transitions.finish import Finished
from jobs.transitions.losses import LOST, LostRow, PolicyOf, end_lost, lost_ending
from jobs.transitions.sql import in_transaction

# The oldest leases first; a row that somebody has locked is skipped, so that it starves no other.
EXPIRED = f"""
{LOST}
WHERE state = 'Processing' AND lease_expires_at < now() - %(grace)s::float8 * interval '1 second'
ORDER BY lease_expires_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def expire(
    *,
    grace: float,
    limit: int,
    policy_of: PolicyOf,
    lost_limit: int,
    rng: Random,
    using: str = "default",
) -> list[Finished]:
    """End the executions whose lease ended more than `grace` seconds ago: WorkerLost, at most `limit` a call.

    `policy_of` gives the retry policy of a type. Call again at once while the answer is as long as `limit`.
    """

    def ending(row: LostRow) -> Ending:
        text = _("The worker %(worker)s stopped answering.") % {"worker": row.worker}
        return lost_ending(row, text=text, policy=policy_of(row.type), lost_limit=lost_limit, rng=rng)

    def work(cursor: CursorWrapper) -> list[Finished]:
        return end_lost(cursor, EXPIRED, {"grace": float(grace), "limit": limit}, ending, using)

    return in_transaction(using, work)
