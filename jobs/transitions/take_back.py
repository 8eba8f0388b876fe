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
from jobs.transitions import keys
from jobs.transitions.finish import Finished
from jobs.transitions.losses import LOST, LostRow, PolicyOf, end_lost, lost_ending
from jobs.transitions.probes import probed
from jobs.transitions.sql import fetch, in_transaction

LEFT_BY = "j.worker_id = %(worker_id)s::uuid"
LOCK_KEYS, LOCK_PROBED = keys.of_running(LEFT_BY), probed(LEFT_BY)
# The dead worker's last transaction may still be at its COMMIT in the database: its rows are skipped, and looked at
# again by the next call. For those whose end the database refused see EXPIRED.
TAKE_BACK = f"""
{LOST} AS j
WHERE {LEFT_BY} AND state = 'Processing'
  AND NOT id = ANY(%(refused)s::uuid[])
ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def take_back(
    worker_id: UUID,
    *,
    policy_of: PolicyOf,
    lost_limit: int,
    rng: Random,
    limit: int,
    refused: set[UUID] | None = None,
    using: str = "default",
) -> list[Finished]:
    """End what a dead worker left Processing, by the rule of a loss: WorkerLost, at most `limit` a call.

    What returns to its queue at once does so with the reason `taken_back`. Only after the worker and everything that
    it started is proven dead. `refused`, and when to call again: as for `expire`.
    """

    def ending(row: LostRow) -> Ending:
        text = _("The worker %(worker)s died while the job ran.") % {"worker": row.worker}
        policy = policy_of(row.type)
        again = Reason.TAKEN_BACK
        return lost_ending(row, text=text, host=row.host, policy=policy, lost_limit=lost_limit, rng=rng, at_once=again)

    bad = set[UUID]() if refused is None else refused

    def work(cursor: CursorWrapper) -> list[Finished]:
        params = {"worker_id": worker_id, "limit": limit}
        locked = {key for (key,) in fetch(cursor, LOCK_KEYS, params)}
        cursor.execute(LOCK_PROBED, params)
        return end_lost(cursor, TAKE_BACK, params, ending, refused=bad, locked=locked, using=using)

    return in_transaction(using, work)
