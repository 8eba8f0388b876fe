"""Why a waiting job does not run: what stands in its way now, each found by an index and counted up to a bound."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.conf import conf
from jobs.queries.circuits import CircuitRow, circuit
from jobs.queries.onejob import served
from jobs.queries.pauses import PauseRow, pauses
from jobs.queries.unserved import Grace, grace
from jobs.serving import UNLOADED
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
)
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
    live workers of the queue can't import ("module, error"), where none of them has the type.
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


def _paused(job: dict[str, Any]) -> list[PauseRow]:
    mine = {("queue", job["queue"]), ("type", job["type"]), *(("tag", tag) for tag in job["tags"])}
    if job["concurrency_key"]:
        mine.add(("key", job["concurrency_key"]))
    return [pause for pause in pauses() if (pause.scope, pause.value) in mine]


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
        slots, busy = cursor.fetchone()
        ahead = message = None
        if queued:
            place: dict[str, int | str | UUID | datetime] = {
                name: job[name] for name in ("queue", "priority", "enqueued_at", "id")
            }
            cursor.execute(AHEAD, place | {"most": COUNTED + 1})
            (ahead,) = cursor.fetchone()
            if conf().messaging.broker:
                cursor.execute(MESSAGE, {"id": job["id"]})
                message = Message(*cursor.fetchone())
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
    )
