"""Neighbours: workers of the same boot and pid namespace. What a dead one held is taken back at once.

Dead means proven dead: no process of its pid and start time, everything that it left killed, and its lock file free.
Whatever is not proven is left to the leases, which need no proof.
"""

import logging
from pathlib import Path
from random import Random

from jobs import leadership, presence, transitions
from jobs.conf import conf
from jobs.presence import Neighbour
from workers import identity, orphans, runfiles
from workers.connections import ENGINE
from workers.policies import retry_policy

log = logging.getLogger(__name__)
# Seconds that a worker which was ending in order is left to its supervisor, whose release charges nothing.
SUPERVISORS_TURN = 30.0
_rng = Random()  # noqa: S311  (jitter)


def take_back_neighbours() -> int:
    """Take back what dead workers of this machine and namespace left Processing; returns how many jobs.

    One query when nobody is dead. At the start of a worker, and then at every heartbeat. Raises database errors.
    """
    near = presence.neighbours(identity.boot_id(), identity.pid_namespace(), ending_for=SUPERVISORS_TURN, using=ENGINE)
    dead = [n for n in near if n.due and identity.has_ended(n.pid, n.pid_started)]
    folder = runfiles.run_folder() if dead else None
    if folder is None:
        return 0
    living = {identity.this_pid(), *(n.pid for n in near if n not in dead)}
    with runfiles.alone(folder) as mine:
        return sum(_take_back(neighbour, folder, living) for neighbour in dead) if mine else 0


def _take_back(dead: Neighbour, folder: Path, living: set[int]) -> int:
    lock_file = runfiles.lock_path(folder, dead.id)
    if not lock_file.exists() or orphans.holds(dead.pid, lock_file):  # (its pid lives, whatever /proc says of its age)
        return 0
    if not orphans.kill_orphans(dead.id, lock_file, orphans.around(living)):
        log.error("worker.outlived", extra={"worker": dead.name, "id": str(dead.id)})
        return 0
    with runfiles.is_free(folder, dead.id) as free:
        if not free:
            return 0
        jobs = _jobs_of(dead)
        if transitions.strays(worker_id=dead.id, known=(), using=ENGINE):
            return len(jobs)  # somebody has their rows locked: the next look finds them
        leadership.resign(leadership.HOUSEKEEPING, dead.id, using=ENGINE)
        presence.leave(dead.id, using=ENGINE)
        runfiles.remove(folder, dead.id)
    log.warning("worker.taken_back", extra={"worker": dead.name, "id": str(dead.id), "jobs": jobs})
    return len(jobs)


def _jobs_of(dead: Neighbour) -> list[str]:
    settings = conf()
    limit, jobs = settings.recovery.batch_size, list[str]()
    while True:
        found = transitions.take_back(
            dead.id,
            policy_of=retry_policy,
            lost_limit=settings.resilience.lost_limit,
            rng=_rng,
            limit=limit,
            using=ENGINE,
        )
        jobs += [str(job.id) for job in found]
        if len(found) < limit:
            return jobs


def sweep_run_files() -> int:
    """Remove the lock files of workers that are gone and that no row knows any more; returns how many."""
    folder = runfiles.run_folder()
    there = runfiles.known_files(folder) if folder else []
    swept = 0
    if folder is None or not there:
        return swept
    for worker_id in set(there) - presence.known(there, using=ENGINE):
        with runfiles.is_free(folder, worker_id) as free:
            if free:
                runfiles.remove(folder, worker_id)
                swept += 1
    return swept
