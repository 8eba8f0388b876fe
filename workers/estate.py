"""What a worker that is proven dead still owned, and what becomes of it."""

from random import Random
from typing import NamedTuple
from uuid import UUID

from jobs import events, leadership, presence, transitions
from jobs.conf import conf
from jobs.transitions.finish import Finished
from jobs.transitions.losses import PolicyOf
from workers.connections import ENGINE
from workers.locks.made import give_back

_rng = Random()  # noqa: S311  (jitter)


class Wound(NamedTuple):
    """Ids of the jobs that left Processing; `done` False: it owns some still, whose rows somebody has locked."""

    jobs: list[str]
    done: bool


def wind_up(worker_id: UUID, *, policy_of: PolicyOf | None, settled: bool) -> Wound:
    """End what the dead worker owns, and when nothing is left mark it Offline for good.

    By the rule of a loss, charged, with the retry policies of `policy_of`; without that back to the queue, uncharged.
    `settled`: it was seen to own nothing when it was dead already, so what it owns now was never started, and returns
    uncharged in any case. Only while its death is proven. Raises database errors; calling again is safe. Its locks,
    that of the leader included, are given back.
    """
    ended, done = _wind_up(worker_id, policy_of, settled)
    jobs = [str(job.id) for job in ended]
    give_back([(job.id, job.dispatch_id) for job in ended], leader=worker_id)
    events.changed(jobs=jobs, workers=[worker_id], topics=("queues", "letters") if jobs else ())
    return Wound(jobs, done)


def _wind_up(worker_id: UUID, policy_of: PolicyOf | None, settled: bool) -> tuple[list[Finished], bool]:
    if settled:
        jobs = _released(worker_id, started=False)
    elif policy_of is not None:
        jobs = _lost(worker_id, policy_of)
    else:
        jobs = _released(worker_id, started=True)
    if transitions.strays(worker_id=worker_id, known=(), using=ENGINE):
        return jobs, False
    # A claim that this look did not see was not answered when the worker died: if it is committed later, nobody has
    # started its jobs.
    leadership.resign(leadership.HOUSEKEEPING, worker_id, using=ENGINE)
    presence.settle(worker_id, using=ENGINE)
    return jobs, True


def _lost(worker_id: UUID, policy_of: PolicyOf) -> list[Finished]:
    settings = conf()
    limit, jobs, refused = settings.recovery.batch_size, list[Finished](), set[UUID]()
    while True:
        before = len(refused)
        found = transitions.take_back(
            worker_id,
            policy_of=policy_of,
            lost_limit=settings.resilience.lost_limit,
            rng=_rng,
            limit=limit,
            refused=refused,
            using=ENGINE,
        )
        jobs += found
        if len(found) + len(refused) - before < limit:
            return jobs


def _released(worker_id: UUID, *, started: bool) -> list[Finished]:
    """What the first look sees may have been started; what only a second one sees was not, as above."""
    jobs, seen = list[Finished](), set[UUID]()
    for begun in (started, False):
        mine = transitions.strays(worker_id=worker_id, known=seen, using=ENGINE)
        claims = [(job, token) for job, token, _ in mine]
        found = transitions.release(claims, worker_id=worker_id, started=begun, using=ENGINE)
        seen.update(token for _, token in claims)
        jobs += found
    return jobs
