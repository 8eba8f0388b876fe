"""Giving back what an ended worker process left Processing: only when it and all that it started are proven dead."""

import logging
import time
from uuid import UUID

from jobs import leadership, presence, transitions
from jobs.models import Worker
from jobs.speech import _
from workers import identity, orphans, runfiles
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, Backoff, drop_connection

log = logging.getLogger(__name__)
PATIENCE = (
    10.0  # seconds for a database that is away, and for the dead to be gone; then the leases' end returns the jobs
)
PAUSE = 0.1  # seconds between two looks at a lock that is not free yet


class NotProvenDead(Exception):
    """Nothing here proves that the worker's process has ended; its leases return its jobs when it has."""


def release_everything(worker_id: UUID) -> int:
    """Return every job of the worker to its queue, uncharged, and mark the worker Offline. Returns how many.

    Kills what the worker left running. Raises NotProvenDead unless the worker's process has ended on this machine, in
    this pid namespace, and its lock file, where there is one, is free.
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
    _prove_dead(worker)
    mine = transitions.strays(worker_id=worker_id, known=(), using=ENGINE)
    if mine:
        transitions.release([(job, token) for job, token, _ in mine], worker_id=worker_id, using=ENGINE)
        log.info("worker.released", extra={"jobs": [str(job) for job, _, _ in mine]})
    leadership.resign(leadership.HOUSEKEEPING, worker_id, using=ENGINE)
    presence.leave(worker_id, using=ENGINE)
    drop_connection()
    folder = runfiles.run_folder()
    if folder is not None:
        runfiles.remove(folder, worker_id)
    return len(mine)


def _prove_dead(worker: Worker) -> None:
    here = (worker.boot_id, worker.pid_namespace) == (identity.boot_id(), identity.pid_namespace())
    who = {"name": worker.name, "pid": worker.pid, "host": worker.host}
    if not here or not identity.has_ended(worker.pid, worker.pid_started):
        raise NotProvenDead(_("worker %(name)s (pid %(pid)d on %(host)s) is not known to have ended") % who)
    folder = runfiles.run_folder()
    lock_file = runfiles.lock_path(folder, worker.id) if folder else None
    spare = orphans.around([identity.this_pid()])
    patience = boottime() + PATIENCE
    while True:
        killed = orphans.kill_orphans(worker.id, lock_file, spare)
        if killed and _is_free(worker.id):
            return
        if boottime() > patience:
            raise NotProvenDead(_("something that worker %(name)s (pid %(pid)d on %(host)s) started still runs") % who)
        time.sleep(PAUSE)


def _is_free(worker_id: UUID) -> bool:
    """A worker without a lock file has ended all the same: it, and the tree that its supervisor killed."""
    folder = runfiles.run_folder()
    if folder is None or not runfiles.lock_path(folder, worker_id).exists():
        return True
    with runfiles.is_free(folder, worker_id) as free:
        return bool(free)
