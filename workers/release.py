"""Giving back what an ended worker process left Processing: only when its handlers are proven dead."""

import logging
from uuid import UUID

from jobs import leadership, presence, transitions
from workers.connections import ENGINE, drop_connection

log = logging.getLogger(__name__)


def release_everything(worker_id: UUID) -> int:
    """Return every job of the worker to its queue, uncharged, and mark the worker Offline. Returns how many.

    The caller vouches that no handler of that worker lives any more.
    """
    mine = transitions.strays(worker_id=worker_id, known=(), using=ENGINE)
    if mine:
        transitions.release([(job, token) for job, token, _ in mine], worker_id=worker_id, using=ENGINE)
        log.info("worker.released", extra={"jobs": [str(job) for job, _, _ in mine]})
    leadership.resign("housekeeping", worker_id, using=ENGINE)
    presence.leave(worker_id, using=ENGINE)
    drop_connection()
    return len(mine)
