"""Take-back: the jobs of a worker that is proven dead, whatever their leases say.

The proof is the caller's, and it comes first: process, children and whatever they started have ended. A lease that
still runs protects an owner that may be alive; a dead one needs none.
"""

from random import Random
from uuid import UUID

from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.outcomes import Ending
from jobs.states import Reason
from jobs.transitions.finish import Finished
from jobs.transitions.losses import LOST, LostRow, PolicyOf, end_lost, lost_ending
from jobs.transitions.sql import in_transaction

# The dead worker's last transaction may still be at its COMMIT in the database: its rows are skipped, and looked at
# again by the next call.
TAKE_BACK = f"""
{LOST}
WHERE worker_id = %(worker_id)s::uuid AND state = 'Processing'
ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def take_back(
    worker_id: UUID,
    *,
    policy_of: PolicyOf,
    lost_limit: int,
    rng: Random,
    limit: int,
    using: str = "default",
) -> list[Finished]:
    """End what a dead worker left Processing, by the rule of a loss: WorkerLost, at most `limit` a call.

    What returns to its queue at once does so with the reason `taken_back`. Only after the worker and everything that
    it started is proven dead. Call again at once while the answer is as long as `limit`.
    """

    def ending(row: LostRow) -> Ending:
        text = _("The worker %(worker)s died while the job ran.") % {"worker": row.worker}
        policy = policy_of(row.type)
        return lost_ending(row, text=text, policy=policy, lost_limit=lost_limit, rng=rng, at_once=Reason.TAKEN_BACK)

    def work(cursor: CursorWrapper) -> list[Finished]:
        return end_lost(cursor, TAKE_BACK, {"worker_id": worker_id, "limit": limit}, ending, using)

    return in_transaction(using, work)
