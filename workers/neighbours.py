"""Neighbours: workers of the same boot and pid namespace. What a dead one held is taken back at once.

Dead means proven dead (`workers.proof`). Whatever is not proven is left to the leases, which need no proof.
"""

import logging
import os
from pathlib import Path
from uuid import UUID

from jobs import presence
from jobs.conf import conf
from jobs.presence import Neighbour
from workers import estate, identity, proof, runfiles
from workers.connections import ENGINE
from workers.policies import retry_policy
from workers.proof import Doubt

log = logging.getLogger(__name__)
# Seconds that a worker which was ending in order is left to its supervisor, whose release charges nothing.
SUPERVISORS_TURN = 30.0
TURNS = 3  # looks that are left to the one that is at it already: then that one is frozen, or has too much to do


class Neighbours:
    """A worker's look at its neighbours."""

    def __init__(self) -> None:
        self._missed = 0
        self._doubted: set[UUID] = set()

    def take_back(self) -> int:
        """Take back what dead workers of this machine and namespace left Processing; returns how many jobs.

        One query when nobody is dead. At the start of a worker, and then at every heartbeat. Raises database errors,
        and OSError when this process can't look around (such as: it has no room for another open file).
        """
        near = presence.neighbours(
            identity.boot_id(), identity.pid_namespace(), ending_for=SUPERVISORS_TURN, using=ENGINE
        )
        dead = [n for n in near if n.due and identity.has_ended(n.pid, n.pid_started)]
        folder = runfiles.run_folder() if dead else None
        if folder is None:
            return 0
        living = {os.getpid(), *(n.pid for n in near if n not in dead)}
        with runfiles.alone(folder) as mine:
            return sum(self._take_back(neighbour, living) for neighbour in dead) if self._go(mine, folder) else 0

    def _go(self, mine: bool, folder: Path) -> bool:
        """Whether to go ahead: two may do it at once without harm, and nobody waits for a frozen one for ever."""
        self._missed = 0 if mine else self._missed + 1
        if self._missed == TURNS + 1:
            log.warning("neighbours.gate_held", extra={"file": str(folder / runfiles.GATE), "looks": TURNS})
        return self._missed == 0 or self._missed > TURNS

    def _take_back(self, dead: Neighbour, living: set[int]) -> int:
        with proof.of_death(dead, living) as doubt:
            if doubt is not None:
                self._say(dead, doubt)
                return 0
            jobs, done = estate.wind_up(dead.id, policy_of=retry_policy, settled=dead.settled)
        self._doubted.discard(dead.id)
        if dead.settled:
            log.warning("worker.late_claims", extra={"worker": dead.name, "id": str(dead.id), "jobs": jobs})
        elif jobs or done:
            log.warning("worker.taken_back", extra={"worker": dead.name, "id": str(dead.id), "jobs": jobs})
        return len(jobs)

    def _say(self, dead: Neighbour, doubt: Doubt) -> None:
        """Once for each: it is asked again at every look."""
        if dead.id in self._doubted:
            return
        self._doubted.add(dead.id)
        level = logging.ERROR if doubt is Doubt.LEFT else logging.INFO
        log.log(level, "worker.not_proven_dead", extra={"worker": dead.name, "id": str(dead.id), "why": str(doubt)})


def sweep_run_files() -> int:
    """Remove the lock files of workers that have been gone for long; returns how many."""
    folder = runfiles.run_folder()
    return runfiles.sweep(folder, conf().retention.offline_workers) if folder else 0
