"""Giving back what an ended worker process left Processing: only when its handlers are proven dead."""

import logging
import time
from uuid import UUID

from jobs import leadership, presence, transitions
from jobs.models import Worker
from jobs.speech import _
from workers import identity
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, Backoff, drop_connection

log = logging.getLogger(__name__)
PATIENCE = 10.0  # seconds for a database that is away; after that the leases' end returns the jobs


class NotProvenDead(Exception):
    """Nothing here proves that the worker's process has ended; its leases return its jobs when it has."""


def release_everything(worker_id: UUID) -> int:
    """Return every job of the worker to its queue, uncharged, and mark the worker Offline. Returns how many.

    Raises NotProvenDead unless the worker's process has ended on this machine: this process took its place (exec), or
    no process of its pid and start time exists any more.
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
    worker = Worker.objects.using(ENGINE).filter(pk=worker_id).first()
    if worker is None:
        raise NotProvenDead(_("no worker %(id)s is registered") % {"id": worker_id})
    if not _has_ended(worker):
        who = {"name": worker.name, "pid": worker.pid, "host": worker.host}
        raise NotProvenDead(_("worker %(name)s (pid %(pid)d on %(host)s) is not known to have ended") % who)
    mine = transitions.strays(worker_id=worker_id, known=(), using=ENGINE)
    if mine:
        transitions.release([(job, token) for job, token, _ in mine], worker_id=worker_id, using=ENGINE)
        log.info("worker.released", extra={"jobs": [str(job) for job, _, _ in mine]})
    leadership.resign(leadership.HOUSEKEEPING, worker_id, using=ENGINE)
    presence.leave(worker_id, using=ENGINE)
    drop_connection()
    return len(mine)


def _has_ended(worker: Worker) -> bool:
    if (worker.boot_id, worker.pid_namespace) != (identity.boot_id(), identity.pid_namespace()):
        return False
    # An exec keeps pid and start time: this very process is what the worker became, its handlers gone with it.
    return worker.pid == identity.this_pid() or identity.start_time(worker.pid) != worker.pid_started
