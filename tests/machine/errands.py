"""What people, clients and the leader call."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError

from jobs import schedules, transitions
from jobs.errors import Conflict
from jobs.ids import new_id
from jobs.ratelimit import Limits, RateLimit
from jobs.states import Reason, State
from jobs.transitions import Trip
from jobs.transitions.insert import NewJob, insert
from jobs.transitions.parents import UnknownParents
from tests.machine.acts import CANCELS, REQUEUES, Act, E, S
from tests.machine.house import House
from tests.machine.verbs import KEYS, ODD, OVERDUE, QUEUES, TAGS, TYPES, born, some

BATCH = 100
LOOKS: dict[str, Any] = {"silent_after": 15.0, "unwatched_after": 45.0}
SCOPES = [("queue", "other"), ("type", "plain"), ("tag", "red"), ("key", "k1"), ("type", "limited"), ("key", "k2")]
DUE = (S, E, Reason.DUE)


def new(house: House, spec: Sequence[int]) -> NewJob:
    """A job of these numbers: kind, key, priority, and whether it is to come, unique, or waits for others."""
    kind, key, priority, how, which = spec
    type_, queue = [("plain", 0), ("limited", 0), ("plain", 1), ("limited", 1), (ODD, 0)][kind]
    row = NewJob(new_id(), type_, QUEUES[queue], "{}", priority, 3, None, at_most_once=how == 4)
    if key:
        name = sorted(KEYS)[key - 1]
        row = row._replace(concurrency_key=name, concurrency_limit=KEYS[name])
    parents = some([job["id"] for job in house.world.of_state(*State)], which, 1 + which % 2)
    if how == 1:
        row = row._replace(delay=60.0)
    elif how == 2:
        row = row._replace(unique_key=f"u{which % 2}")
    elif how == 3 and parents:
        row = row._replace(after=tuple(parents), on_parent_failure="cancel" if which < 3 else "run")
    elif how == 5:
        row = row._replace(tags=TAGS)
    return row


def insertion(house: House, specs: Sequence[Sequence[int]]) -> Act:
    """New jobs, in one batch."""
    rows = sorted((new(house, spec) for spec in specs), key=lambda row: row.id)

    def check(act: Act, answers: Any) -> None:
        act.agrees({one.id for one in answers if not one.duplicate}, born(act))
        known = {one.id for one in answers if one.duplicate}
        act.agrees(known <= house.born, True)

    # A parent that is deleted before the COMMIT makes that fail; so does a rival of a unique key that stays open.
    errors = (UnknownParents, Conflict, IntegrityError)
    ids = frozenset(row.id for row in rows)
    return Act("insert", lambda using: insert(rows, using=using), ids, check=check, errors=errors)


def _by_person(
    house: House, verb: str, ids: Sequence[UUID], act: Callable[..., Any], changes: Callable[[Act], set[UUID]]
) -> Act | None:
    def check(done: Act, verdicts: Any) -> None:
        done.agrees({v.id for v in verdicts if v.applied and not v.requested}, changes(done))

    return Act(verb, lambda using: act(list(ids), using=using), frozenset(ids), check=check) if ids else None


def _of(house: House, first: int, most: int, *states: str) -> list[UUID]:
    """Jobs, first those in these states."""
    fit = [job["id"] for job in house.world.of_state(*states)]
    return some(fit or [job["id"] for job in house.world.of_state(*State)], first, most)


def cancel(house: House, first: int, most: int) -> Act | None:
    ids = _of(house, first, most, *State)
    return _by_person(
        house, "cancel", ids, transitions.cancel,
        lambda act: {step.job for step in act.moved(CANCELS)},
    )  # fmt: skip


def requeue(house: House, first: int, most: int) -> Act | None:
    ids = _of(house, first, most, "Failed", "Cancelled")
    return _by_person(house, "requeue", ids, transitions.requeue, lambda act: {s.job for s in act.moved(REQUEUES)})


def run_now(house: House, first: int, most: int) -> Act | None:
    ids = _of(house, first, most, "Scheduled")
    return _by_person(house, "run_now", ids, transitions.run_now, lambda act: {s.job for s in act.steps})


def delete(house: House, first: int, most: int) -> Act | None:
    ids = _of(house, first, most, "Succeeded", "Failed", "Cancelled")
    return _by_person(house, "delete", ids, transitions.delete, lambda act: act.gone)


def reprioritise(house: House, first: int, most: int) -> Act | None:
    ids = _of(house, first, most, "Scheduled", "Enqueued")

    def check(act: Act, verdicts: Any) -> None:
        for one in verdicts:
            act.agrees(one.applied, one.state in ("Scheduled", "Enqueued"))

    def call(using: str) -> Any:
        return transitions.reprioritise(ids, first % 5 - 2, using=using)

    return Act("reprioritise", call, frozenset(ids), check=check) if ids else None


def defer(house: House, first: int, most: int) -> Act | None:
    pairs = some(house.old, first, most)

    def check(act: Act, moved: Any) -> None:
        act.agrees(moved, {step.job for step in act.steps})

    def owns(step: Any, _before: Any) -> bool:
        return (step.job, step.old["dispatch_id"]) in pairs

    return Act("defer", lambda using: transitions.defer(pairs, using=using), owns=owns, check=check) if pairs else None


def promote(house: House) -> Act:
    def owns(step: Any, before: Any) -> bool:
        return step.old is not None and step.old["run_at"] is not None and step.old["run_at"] <= before.now

    return Act(
        "promote", lambda using: transitions.promote(limit=BATCH, using=using), owns=owns,
        check=lambda act, count: act.agrees(count, len(act.moved(DUE))),
    )  # fmt: skip


def purge(house: House, number: int) -> Act:
    state = sorted([State.SUCCEEDED, State.FAILED, State.CANCELLED])[number % 3]

    def call(using: str) -> int:
        return transitions.purge(state, age=-1, letters=0 if number > 2 else 1e6, limit=2, using=using).jobs

    # A statement of it gives up soon where somebody is in its way.
    return Act("purge", call, check=lambda act, n: act.agrees(n, len(act.gone)), errors=(OperationalError,))


def forget_keys(house: House) -> Act:
    return Act("forget_keys", lambda using: transitions.forget_keys(age=-1, limit=BATCH, using=using))


def discard(house: House, first: int, most: int) -> Act | None:
    ids = some([letter["id"] for letter in house.world.letters], first, most)
    return Act("discard", lambda using: transitions.discard(ids, using=using)) if ids else None


def pause(house: House, number: int) -> Act:
    scope, value = SCOPES[number % len(SCOPES)]
    return Act("pause", lambda using: transitions.pause(scope, value, using=using))


def resume(house: House, number: int) -> Act:
    found = sorted((scope, value) for scope, value, _ in house.world.pauses) or SCOPES
    scope, value = found[number % len(found)]
    return Act("resume", lambda using: transitions.resume(scope, value, using=using))


def turn_pauses(house: House) -> Act:
    def call(using: str) -> None:
        transitions.expire_pauses(using=using)
        transitions.open_pauses(limit=BATCH, using=using)
        transitions.park_paused_heads(limit=BATCH, silent_after=15.0, using=using)

    return Act("turn_pauses", call)


def set_limits(house: House, most: int, rate: int) -> Act:
    limits = Limits(most or None, RateLimit(rate, 3600.0) if rate else None)
    return Act("set_limits", lambda using: transitions.set_limits(TYPES[1], limits, actor="ana", using=using))


def leader(house: House) -> Act:
    """Whoever leads opens the gates that he was told of."""
    told, house.told = sorted(house.told), set()
    split = [payload.partition(":")[::2] for payload in told]

    def call(using: str) -> None:
        transitions.open_keys([one for one in split if one[0] in ("key", "type")], limit=BATCH, using=using)
        transitions.open_ids({int(value) for kind, value in split if kind == "id"}, limit=BATCH, using=using)
        transitions.check_parents([UUID(value) for kind, value in split if kind == "parents"], using=using)
        transitions.open_rates(limit=BATCH, using=using)

    return Act("leader", call)


def sweep(house: House) -> Act:
    """The safety net; answers how much it has found."""

    def call(using: str) -> int:
        transitions.seat_running(using=using)
        transitions.free_idle(limit=BATCH, silent_after=15.0, using=using)
        found = transitions.sweep(after="", age=0.0, limit=BATCH, using=using).found
        return found + transitions.open_parents(limit=BATCH, unseen_for=0.0, using=using).opened

    return Act("sweep", call)


def trip(house: House) -> Act:
    reason = Trip("plain", 10, 6, 30.0, 30.0, 0.0)
    return Act("trip", lambda using: transitions.trip([reason], using=using))


def turn_circuits(house: House) -> Act:
    def call(using: str) -> None:
        transitions.open_circuits(limit=BATCH, using=using)
        known = transitions.breakers(using=using)
        if broken := [name for name, state, _ in known if state != "closed"]:
            transitions.return_unserved(limit=BATCH, unserved_for=0.0, **LOOKS, using=using)
            transitions.park_waiting(broken, limit=BATCH, silent_after=15.0, using=using)
            due = {name: 600.0 for name, state, due in known if state == "open" and due}
            transitions.probe(due, patience=60.0, silent_after=15.0, using=using)

    return Act("turn_circuits", call)


def unknown_types(house: House) -> Act:
    def call(using: str) -> None:
        transitions.open_unknown(limit=BATCH, silent_after=15.0, using=using)
        transitions.watch_unserved(**LOOKS, using=using)
        transitions.park_unserved(limit=BATCH, unserved_for=0.0, **LOOKS, using=using)
        transitions.fail_unknown(limit=BATCH, grace=1e6, **LOOKS, using=using)

    return Act("unknown_types", call)


def fire(house: House) -> Act:
    def owns(step: Any, _before: Any) -> bool:
        return step.new["recurring_job_id"] is not None

    return Act("fire", lambda using: schedules.fire_due(limit=9, using=using), owns=owns)


# What somebody has locked is passed over: its instant comes later.
DUE_NOW = """
UPDATE turno.jobs SET run_at = now() - interval '1 second' WHERE id IN (
    SELECT id FROM turno.jobs WHERE run_at > now() FOR NO KEY UPDATE SKIP LOCKED
)
"""
LEASES_OVER = f"""
UPDATE turno.jobs SET lease_expires_at = now() - interval '{OVERDUE} seconds' WHERE id IN (
    SELECT id FROM turno.jobs WHERE state = 'Processing' AND worker_id = %s FOR NO KEY UPDATE SKIP LOCKED
)
"""
PROBES_DUE = """
UPDATE turno.circuits SET retry_at = now() - interval '1 second' WHERE type IN (
    SELECT type FROM turno.circuits WHERE state = 'open' FOR NO KEY UPDATE SKIP LOCKED
)
"""
FIRES_NOW = """
UPDATE turno.recurring_jobs SET next_run_at = now() - interval '1 millisecond', version = version + 1 WHERE id IN (
    SELECT id FROM turno.recurring_jobs WHERE next_run_at > now() FOR NO KEY UPDATE SKIP LOCKED
)
"""
