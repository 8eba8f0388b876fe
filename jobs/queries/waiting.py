"""Why a waiting job does not run: what stands in its way now, each found by an index and counted up to a bound."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.conf import conf
from jobs.queries.circuits import CircuitRow, circuit
from jobs.queries.gates import SHOWN, Gate, Other, gate_of
from jobs.queries.onejob import served
from jobs.queries.pauses import PauseRow
from jobs.queries.unserved import Grace, grace
from jobs.serving import IN_FORCE, UNLOADED
from jobs.states import PARKED, State, Waiting

COUNTED = 1000
MODULES = 3  # named of those that can't be imported
# In the order of claiming, in two walks of its index: a better priority, and the same one but earlier.
AHEAD = """
SELECT count(*) FROM (
    (SELECT FROM turno.jobs
     WHERE state = 'Enqueued' AND queue = %(queue)s AND priority > %(priority)s LIMIT %(most)s)
    UNION ALL
    (SELECT FROM turno.jobs
     WHERE state = 'Enqueued' AND queue = %(queue)s AND priority = %(priority)s
       AND (enqueued_at, id) < (%(enqueued_at)s, %(id)s::uuid) LIMIT %(most)s)
) AS before_it
"""
ROOM = """
SELECT COALESCE((
    SELECT sum(LEAST(GREATEST((w.queues->>%(queue)s)::numeric, 0), 1000))::int FROM turno.workers AS w
    WHERE w.state = 'Online' AND w.seen_at > now() - make_interval(secs => %(silent)s)
      AND jsonb_typeof(w.queues->%(queue)s) = 'number'
), 0), (
    SELECT count(*) FROM turno.jobs WHERE state = 'Processing' AND queue = %(queue)s
), EXISTS (SELECT FROM turno.queues WHERE name = %(queue)s AND slots = 0)
"""
# Those that have been running longest.
BUSY = """
SELECT id, type, state, GREATEST(0, extract(epoch FROM now() - claimed_at))::float8, worker_label->>'name'
FROM turno.jobs WHERE state = 'Processing' AND queue = %(queue)s ORDER BY claimed_at, id LIMIT %(shown)s
"""
# Where its message is: in the outbox, or with the broker.
MESSAGE = """
SELECT o.id IS NOT NULL, extract(epoch FROM now() - COALESCE(o.created_at, j.announced_at))::float8,
    COALESCE(o.failures, 0), COALESCE(left(o.last_error, 500), ''),
    CASE WHEN o.failures > 0 THEN GREATEST(0, extract(epoch FROM o.locked_until - now())) END::float8
FROM turno.jobs AS j LEFT JOIN LATERAL (
    SELECT id, created_at, failures, last_error, locked_until FROM turno.outbox_messages
    WHERE job_id = j.id AND kind = 'dispatch' AND dispatch_id = j.dispatch_id LIMIT 1
) AS o ON true
WHERE j.id = %(id)s::uuid
"""
# The pauses in force of what a job belongs to, each by its own name: however many others there are.
PAUSED = f"""
SELECT p.scope, p.value, p.reason, p.paused_by, p.created_at, extract(epoch FROM now() - p.created_at)::float8,
    p.until, extract(epoch FROM p.until - now())::float8
FROM unnest(%(scopes)s::text[], %(values)s::text[]) AS mine(scope, value)
JOIN turno.pauses AS p ON p.scope = mine.scope AND p.value = mine.value
WHERE {IN_FORCE} ORDER BY p.created_at, p.id
"""
# Since when a parked job waits, and how long from now until its instant: by the database's clock.
SINCE = """
SELECT extract(epoch FROM now() - c.at)::float8 FROM turno.job_state_changes AS c
WHERE c.job_id = %(id)s::uuid ORDER BY c.id DESC LIMIT 1
"""
DUE = "SELECT GREATEST(0, extract(epoch FROM %(run_at)s::timestamptz - now()))::float8"


@dataclass(frozen=True, slots=True)
class Message:
    """The message of an Enqueued job on its way by a broker. `waiting`: it is still in the outbox, `age`: for so many
    seconds there, or since the broker has it (None: nobody knows). `failures`, `error`, `retry_in` of its last tries.
    """

    waiting: bool
    age: float | None
    failures: int
    error: str
    retry_in: float | None


@dataclass(frozen=True, slots=True)
class Hindrances:
    """What keeps a waiting job from running. `ahead`: jobs before it in its queue (None when it is not queued there),
    counted up to COUNTED; `slots`: those that live workers have for the queue, `busy`: of the queue's running jobs;
    `circuit`: that of its type, None while it is closed. `message`: of an Enqueued job, None
    where PostgreSQL carries the work. `grace`: of one parked for its type, None while it does not run. `unloaded`: what
    live workers of the queue can't import ("module, error"), where none of them has the type. `gate`: what a job parked
    for a key, a limit, a rate or its parents waits for, or a queued one will; `since_for`: seconds that it has waited
    for that. `running`: the first few of the jobs that keep all slots of its queue busy. `closed`: somebody has set
    that no worker has a slot for the queue.
    """

    pauses: list[PauseRow]
    queue_served: bool
    type_served: bool
    ahead: int | None
    slots: int
    busy: int
    circuit: CircuitRow | None
    message: Message | None = None
    grace: Grace | None = None
    unloaded: tuple[str, ...] = ()
    gate: Gate | None = None
    since_for: float | None = None
    running: tuple[Other, ...] = ()
    closed: bool = False


def _paused(job: dict[str, Any]) -> list[PauseRow]:
    mine = {("queue", job["queue"]), ("type", job["type"]), *(("tag", tag) for tag in job["tags"])}
    if job["concurrency_key"]:
        mine.add(("key", job["concurrency_key"]))
    scopes, values = zip(*sorted(mine), strict=True)
    with connections["default"].cursor() as cursor:
        cursor.execute(PAUSED, {"scopes": list(scopes), "values": list(values)})
        return [PauseRow(*row) for row in cursor.fetchall()]


def _running(queue: str) -> tuple[Other, ...]:
    with connections["default"].cursor() as cursor:
        cursor.execute(BUSY, {"queue": queue, "shown": SHOWN})
        return tuple(Other(*row) for row in cursor.fetchall())


def _since(id_: UUID) -> float | None:
    with connections["default"].cursor() as cursor:
        cursor.execute(SINCE, {"id": id_})
        found = cursor.fetchone()
        return None if found is None else max(0.0, found[0])


def due_in(job: dict[str, Any]) -> float | None:
    """Seconds until the instant that a job waits for, 0 once it has come; None for one that waits for none."""
    if job["run_at"] is None:
        return None
    with connections["default"].cursor() as cursor:
        cursor.execute(DUE, {"run_at": job["run_at"]})
        left: float = cursor.fetchone()[0]
        return left


def _unloaded(queue: str) -> tuple[str, ...]:
    with connections["default"].cursor() as cursor:
        cursor.execute(UNLOADED, {"queues": [queue], "silent": conf().worker.silent_after})
        return tuple(f"{module}, {error}" for _queue, module, error in cursor.fetchall()[:MODULES])


def hindrances(job: dict[str, Any]) -> Hindrances | None:
    """What stands in the way of a job (its columns); None for one that does not wait for a worker or a gate."""
    queued = job["state"] == State.ENQUEUED
    if not queued and job["waiting_for"] not in PARKED:
        return None
    by_queue, by_type = served(job["queue"], job["type"])
    unknown = job["waiting_for"] == Waiting.UNKNOWN_TYPE
    with connections["default"].cursor() as cursor:
        cursor.execute(ROOM, {"queue": job["queue"], "silent": conf().worker.silent_after})
        slots, busy, closed = cursor.fetchone()
        ahead = message = None
        if queued:
            place: dict[str, int | str | UUID | datetime] = {
                name: job[name] for name in ("queue", "priority", "enqueued_at", "id")
            }
            cursor.execute(AHEAD, place | {"most": COUNTED + 1})
            (ahead,) = cursor.fetchone()
            if conf().messaging.broker:
                cursor.execute(MESSAGE, {"id": job["id"]})
                found = cursor.fetchone()  # nothing when somebody has deleted the job since it was read
                message = None if found is None else Message(*found)
    return Hindrances(
        _paused(job),
        by_queue,
        by_type,
        ahead,
        slots,
        busy,
        circuit=circuit(job["type"]),
        message=message,
        grace=grace(job["queue"], job["type"], job["enqueued_at"]) if unknown else None,
        unloaded=_unloaded(job["queue"]) if by_queue and not by_type else (),
        gate=gate_of(job),
        since_for=None if queued else _since(job["id"]),
        running=_running(job["queue"]) if queued and 0 < slots <= busy else (),
        closed=closed,
    )
