"""Giving back what an ended worker process left Processing: only when its handlers are proven dead."""

import logging
import time
from uuid import UUID

from jobs import leadership, presence, transitions
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, Backoff, drop_connection

log = logging.getLogger(__name__)
PATIENCE = 10.0  # seconds for a database that is away; after that the leases' end returns the jobs


def release_everything(worker_id: UUID) -> int:
    """Return every job of the worker to its queue, uncharged, and mark the worker Offline. Returns how many.

    The caller vouches that no handler of that worker lives any more.
    """
    backoff, patience = Backoff(2.0), boottime() + PATIENCE
    while True:
        try:
            return _release(worker_id)
        except DATABASE_ERRORS:
            drop_connection()
            if boottime() > patience:
                log.warning("release.database_away", extra={"worker": str(worker_id)})
                return 0
            time.sleep(backoff.delay())


def _release(worker_id: UUID) -> int:
    mine = transitions.strays(worker_id=worker_id, known=(), using=ENGINE)
    if mine:
        transitions.release([(job, token) for job, token, _ in mine], worker_id=worker_id, using=ENGINE)
        log.info("worker.released", extra={"jobs": [str(job) for job, _, _ in mine]})
    leadership.resign("housekeeping", worker_id, using=ENGINE)
    presence.leave(worker_id, using=ENGINE)
    drop_connection()
    return len(mine)
