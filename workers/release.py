"""Giving back what an ended worker process left Processing: only when it and all that it started are proven dead."""

import logging
import os
import time
from uuid import UUID

from jobs.models import Worker
from jobs.speech import _
from jobs.text import first_line
from workers import estate, identity, proof
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, Backoff, drop_connection
from workers.policies import configured_retry_policy
from workers.proof import Doubt

log = logging.getLogger(__name__)
# Seconds for a database that is away, for the dead to be gone and for locked rows, together; then the leases' end
# returns the jobs.
PATIENCE = 20.0


class NotReleased(Exception):
    """The jobs are not given back, or not all; their leases return them."""


class NotProvenDead(NotReleased):
    """Nothing here proves that the worker's process, and all that it started, has ended."""


def release_everything(worker_id: UUID, *, lost: bool = False, reaped: bool = False) -> int:
    """Return every job of the worker to its queue and mark the worker Offline. Returns how many.

    Uncharged, or, when the worker was `lost`, by the rule of a loss. Kills what the worker left running. `reaped`: the
    caller is its supervisor, and has killed and reaped all that was below it. Raises NotProvenDead unless the worker's
    process has ended on this machine, in this pid namespace, and its lock file is free (`reaped`: or there is none);
    NotReleased when the database does not answer, or somebody has the jobs' rows locked, for PATIENCE seconds.
    """
    backoff, until, returned = Backoff(2.0), boottime() + PATIENCE, 0
    while True:
        try:
            count, done = _release(worker_id, lost, reaped, until)
            returned += count
            if done:
                return returned
            reason = _("somebody has its jobs' rows locked in the database")
        except DATABASE_ERRORS as error:
            reason = _("the database does not answer (%(error)s)") % {"error": first_line(error)}
        finally:
            drop_connection()
        if boottime() > until:
            log.error("release.failed", extra={"worker": str(worker_id), "reason": reason})
            raise NotReleased(reason)
        time.sleep(backoff.delay())


def _release(worker_id: UUID, lost: bool, reaped: bool, until: float) -> tuple[int, bool]:
    worker = Worker.objects.using(ENGINE).filter(pk=worker_id).first()
    if worker is None:
        raise NotProvenDead(_("no worker %(id)s is registered") % {"id": worker_id})
    if (worker.boot_id, worker.pid_namespace) != (identity.boot_id(), identity.pid_namespace()):
        raise NotProvenDead(_sentence(Doubt.LIVES, worker))
    with proof.of_death(worker, [os.getpid()], until=until, reaped=reaped) as doubt:
        if doubt is not None:
            raise NotProvenDead(_sentence(doubt, worker))
        policy_of = configured_retry_policy if lost else None
        jobs, done = estate.wind_up(worker_id, policy_of=policy_of, settled=worker.settled_at is not None)
    if jobs:
        log.info("worker.released", extra={"jobs": jobs, "lost": lost})
    return len(jobs), done


def _sentence(doubt: Doubt, worker: Worker) -> str:
    if doubt is Doubt.NO_FILE:
        text = _(
            "worker %(name)s (pid %(pid)d on %(host)s) has no lock file here, without which nobody but its supervisor "
            "knows that all of its processes have ended"
        )
    elif doubt is Doubt.FOREIGN:
        text = _(
            "worker %(name)s (pid %(pid)d on %(host)s) was another user's, and its processes can't be seen from here: "
            "ask as that user, or as root"
        )
    elif doubt is Doubt.LEFT:
        text = _("something that worker %(name)s (pid %(pid)d on %(host)s) started still runs, or may")
    else:
        text = _("worker %(name)s (pid %(pid)d on %(host)s) is not known to have ended")
    return text % {"name": worker.name, "pid": worker.pid, "host": worker.host}
