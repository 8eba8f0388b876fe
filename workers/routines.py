"""The housekeeping of the cluster, each routine one batch a call; every one is safe when two workers run it at once."""

import logging
from random import Random
from time import monotonic
from uuid import UUID

from jobs import events, presence, serving, transitions
from jobs.conf import Settings, conf
from workers.connections import ENGINE
from workers.folders import sweep_folders
from workers.gates import Gates
from workers.instants import Instants
from workers.locks.made import give_back
from workers.neighbours import Neighbours, sweep_run_files
from workers.policies import attempt_timeout, retry_policy
from workers.promises import Promises
from workers.recurring import STARTED, Declared, Recurring
from workers.retention import Retention
from workers.service import Service

log = logging.getLogger(__name__)
UNKNOWN_TYPES = 2.0  # seconds between two looks at what workers know and what jobs wait for
PAUSES = 1.0  # seconds between two looks whether a pause is over, and what waits for one
CIRCUITS = 1.0  # seconds between two looks whether a breaker is to be probed, and what waits for one
RUN_FILES = 600.0  # seconds between two looks for lock files that nobody needs
REFUSED = 60.0  # seconds after which recovery tries again what the database refused
_rng = Random()  # noqa: S311  (jitter)


def promote_due() -> int:
    """Enqueue the jobs whose instant has come."""
    promoted = transitions.promote(limit=conf().scheduler.batch_size, using=ENGINE)
    if promoted:
        events.changed(topics=("jobs", "queues"))
    return promoted


class Recovery:
    """Ends the executions whose lease ended; remembers for REFUSED seconds whose end the database refused."""

    def __init__(self) -> None:
        self._refused: set[UUID] = set()
        self._again = monotonic() + REFUSED

    def recover(self) -> int:
        """One batch: WorkerLost, and what the retry rule says. The jobs' locks are given back.

        What the database refuses takes nobody's place in the batch: the answer counts it too.
        """
        if monotonic() >= self._again:
            self._refused.clear()
            self._again = monotonic() + REFUSED
        settings, before = conf(), len(self._refused)
        found = transitions.expire(
            grace=settings.recovery.lease_grace_period,
            limit=settings.recovery.batch_size,
            policy_of=retry_policy,
            lost_limit=settings.resilience.lost_limit,
            rng=_rng,
            refused=self._refused,
            using=ENGINE,
        )
        for job in found:
            about = {"job": str(job.id), "state": str(job.state), "execution": job.execution}
            log.warning("job.worker_lost", extra=about)
        if found:
            give_back([(job.id, job.dispatch_id) for job in found])
            events.changed(jobs=[job.id for job in found], topics=("workers", "queues", "letters"))
        return len(found) + len(self._refused) - before


def _looks(settings: Settings) -> dict[str, float]:
    """How long a worker may be silent, and how long nobody may have looked, until what was seen counts no more."""
    silent_after = settings.worker.silent_after
    unwatched_after = serving.unwatched_after(silent_after, settings.worker.leadership_lease)
    return {"silent_after": silent_after, "unwatched_after": unwatched_after}


def unknown_types() -> int:
    """Jobs whose type no worker of their queue knows: enqueue what one knows by now, park what none does, and end what
    has waited for the grace. Answers the largest batch."""
    settings = conf()
    limit, silent_after = settings.recovery.batch_size, settings.worker.silent_after
    looks = _looks(settings)
    opened = transitions.open_unknown(limit=limit, silent_after=silent_after, using=ENGINE)
    transitions.watch_unserved(**looks, using=ENGINE)
    # Whoever is started again, or replaced by another version, has its types back before so long: nothing is parked.
    parked = transitions.park_unserved(limit=limit, unserved_for=silent_after, **looks, using=ENGINE)
    failed = transitions.fail_unknown(limit=limit, grace=settings.resilience.unknown_type_grace, **looks, using=ENGINE)
    for job in failed:
        log.warning("job.unknown_type", extra={"job": str(job)})
    if opened or parked or failed:
        topics = ("jobs", "queues", "letters") if failed else ("jobs", "queues")
        events.changed(jobs=None if opened else [*parked, *failed], topics=topics)
    return max(opened, len(parked), len(failed))


def turn_circuits() -> int:
    """Of breakers: park what waits behind open ones, let probes through, wake what waits behind closed ones.

    Returns how many jobs it moved: while there are some, more may have come to where it looks.
    """
    settings = conf()
    known = transitions.breakers(using=ENGINE)
    if not known:
        return 0
    batch = settings.recovery.batch_size
    moved = transitions.open_circuits(limit=batch, using=ENGINE)
    if broken := [name for name, state, _ in known if state != "closed"]:
        silent_after = settings.worker.silent_after
        moved += transitions.return_unserved(limit=batch, unserved_for=silent_after, **_looks(settings), using=ENGINE)
        moved += transitions.park_waiting(broken, limit=batch, silent_after=silent_after, using=ENGINE)
        anew, probes = transitions.probe(
            {name: attempt_timeout(name) for name, state, due in known if state == "open" and due},
            patience=settings.worker.lease_duration,
            silent_after=silent_after,
            using=ENGINE,
        )
        for name in anew:
            log.warning("breaker.probe_lost", extra={"type": name})
        moved += probes + len(anew)
    if moved:
        events.changed(topics=("jobs", "queues"))
    return moved


def turn_pauses() -> int:
    """Of pauses: lift those whose time is over, wake what one that is gone has left behind, park what the others hold
    back at the head of a queue.

    Returns how many that were: while there are some, more may have come to where it looks.
    """
    settings = conf()
    over = transitions.expire_pauses(using=ENGINE)
    for pause in over:
        log.info("pause.over", extra={"scope": pause.scope, "value": pause.value})
    limit = settings.recovery.batch_size
    woken = transitions.open_pauses(limit=limit, using=ENGINE)
    parked = transitions.park_paused_heads(limit=limit, silent_after=settings.worker.silent_after, using=ENGINE)
    if over or woken or parked:
        events.changed(topics=("jobs", "queues"))
    return len(over) + woken + parked


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


def services(gates: Gates | None = None, declared: Declared | None = None) -> dict[str, Service]:
    """The routines of a worker, by name; `gates` is told what it is to open, `declared` is asked what it found."""
    settings = conf()
    recovery, gates = settings.recovery, gates or Gates()
    recurring, declared = Recurring(), declared or Declared()
    promises, retention = Promises(), Retention()
    promoter = Instants(promote_due, lambda: transitions.next_due(using=ENGINE))
    made = [
        Service("promoter", promoter.run_once, interval=promoter.interval, batch=settings.scheduler.batch_size),
        Service("recovery", Recovery().recover, interval=recovery.interval, batch=recovery.batch_size),
        Service("unknown types", unknown_types, interval=UNKNOWN_TYPES, batch=settings.recovery.batch_size),
        Service("pauses", turn_pauses, interval=PAUSES, batch=1),
        Service("circuits", turn_circuits, interval=CIRCUITS, batch=1),
        Service("recurring", recurring.run_once, interval=recurring.interval, batch=settings.scheduler.batch_size),
        Service("gates", gates.run_once, interval=gates.interval, batch=1),
        Service("promises", promises.run_once, interval=promises.interval),
        Service("presence", sweep_workers, interval=settings.worker.silent_after),
        Service("retention", retention.run_once, interval=retention.interval),
        # Each machine has its own: no leader elsewhere can see what has died here.
        Service("neighbours", Neighbours().take_back, interval=settings.worker.heartbeat_interval, exclusive=False),
        Service("declared", declared.run_once, interval=STARTED, exclusive=False),
        Service("run files", sweep_run_files, interval=RUN_FILES, exclusive=False),
        Service("folders", sweep_folders, interval=RUN_FILES, exclusive=False),
    ]
    return {service.name: service for service in made}
