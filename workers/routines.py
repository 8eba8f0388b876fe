"""The housekeeping of the cluster, each routine one batch a call; every one is safe when two workers run it at once."""

import logging
from random import Random

from jobs import events, presence, transitions, upkeep
from jobs.conf import conf
from jobs.states import State
from workers.connections import ENGINE
from workers.locks.made import give_back
from workers.neighbours import Neighbours, sweep_run_files
from workers.policies import retry_policy
from workers.service import Service

log = logging.getLogger(__name__)
LOCKED = 0.05  # seconds
UNKNOWN_TYPES = 2.0  # seconds between two looks for parked jobs whose type somebody serves by now
RUN_FILES = 600.0  # seconds between two looks for lock files that nobody needs
_rng = Random()  # noqa: S311  (jitter)


def promote_due() -> int:
    """Enqueue the jobs whose instant has come."""
    promoted = transitions.promote(limit=conf().scheduler.batch_size, using=ENGINE)
    if promoted:
        events.changed(topics=("jobs", "queues"))
    return promoted


def until_next_due() -> float:
    """Seconds to sleep: until the next due job, at most the scheduler's interval."""
    nearest = transitions.next_due(using=ENGINE)
    interval = conf().scheduler.interval
    if nearest == 0:  # due, and not promoted just now: most likely somebody has its row locked, maybe for long
        return min(interval, LOCKED)
    return interval if nearest is None else min(interval, max(0.005, nearest))


def recover() -> int:
    """End the executions whose lease ended: WorkerLost, and what the retry rule says. Their locks are given back."""
    settings = conf()
    found = transitions.expire(
        grace=settings.recovery.lease_grace_period,
        limit=settings.recovery.batch_size,
        policy_of=retry_policy,
        lost_limit=settings.resilience.lost_limit,
        rng=_rng,
        using=ENGINE,
    )
    for job in found:
        log.warning("job.worker_lost", extra={"job": str(job.id), "state": str(job.state), "execution": job.execution})
    if found:
        give_back([(job.id, job.dispatch_id) for job in found])
        events.changed(jobs=[job.id for job in found], topics=("workers", "queues", "letters"))
    return len(found)


def open_unknown() -> int:
    """Enqueue what was parked because no worker knew its type, now that one does."""
    settings = conf()
    opened = transitions.open_unknown(
        limit=settings.recovery.batch_size, silent_after=settings.worker.silent_after, using=ENGINE
    )
    if opened:
        events.changed(topics=("jobs", "queues"))
    return opened


def sweep_workers() -> int:
    """Mark silent workers Offline, forget those that left long ago."""
    settings = conf()
    silent = presence.sweep(silent_for=settings.worker.lease_duration, using=ENGINE)
    if silent:
        log.warning("workers.silent", extra={"count": silent})
    forgotten = presence.forget(offline_for=settings.retention.offline_workers, using=ENGINE)
    if silent or forgotten:
        events.changed(topics=("workers",))
    return silent + forgotten


def retain() -> int:
    """Delete what is older than it is kept: jobs, metrics, sessions, acts over many; returns the largest batch."""
    kept = conf().retention
    ages = {State.SUCCEEDED: kept.succeeded, State.CANCELLED: kept.cancelled, State.FAILED: kept.failed}
    deleted = [
        transitions.purge(state, age=age, letters=kept.dead_letters, limit=kept.batch_size, using=ENGINE)
        for state, age in ages.items()
    ]
    if any(deleted):
        log.info("jobs.purged", extra={"count": sum(deleted)})
    deleted.append(upkeep.forget_metrics(age=kept.metrics, limit=kept.batch_size, using=ENGINE))
    deleted.append(upkeep.forget_bulk(limit=kept.batch_size, using=ENGINE))
    deleted.append(upkeep.forget_sessions(limit=kept.batch_size, using=ENGINE))
    return max(deleted)


def services() -> dict[str, Service]:
    """The routines of a worker, by name."""
    settings = conf()
    made = [
        Service("promoter", promote_due, interval=until_next_due, batch=settings.scheduler.batch_size),
        Service("recovery", recover, interval=settings.recovery.interval, batch=settings.recovery.batch_size),
        Service("unknown types", open_unknown, interval=UNKNOWN_TYPES, batch=settings.recovery.batch_size),
        Service("presence", sweep_workers, interval=settings.worker.silent_after),
        Service("retention", retain, interval=settings.retention.interval, batch=settings.retention.batch_size),
        # Each machine has its own: no leader elsewhere can see what has died here.
        Service("neighbours", Neighbours().take_back, interval=settings.worker.heartbeat_interval, exclusive=False),
        Service("run files", sweep_run_files, interval=RUN_FILES, exclusive=False),
    ]
    return {service.name: service for service in made}
