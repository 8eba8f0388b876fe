"""What people and the API do to jobs: cancel, requeue, run now, delete. Each answers with a verdict a job."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from django.db import IntegrityError
from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Verdict
from jobs.states import State
from jobs.transitions import keys
from jobs.transitions.handover import pass_on, tell_of_keys
from jobs.transitions.outbox import broker, dispatch, enqueued
from jobs.transitions.parents import after_ends, lock_parents, park_children
from jobs.transitions.purge import unlink
from jobs.transitions.sql import CONTROL, TRIES, fetch, in_transaction, notify, notify_all

LOCK = """
SELECT id, state, worker_id, run_at IS NULL, concurrency_key FROM turno.jobs
WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE
"""
CANCEL = """
WITH waiting AS (
    UPDATE turno.jobs AS j
    SET state = 'Cancelled', finished_at = now(), dispatch_id = NULL, announced_at = NULL, waiting_for = NULL,
        gate = NULL, run_at = NULL,
        cancel_requested_at = now(), cancel_requested_by = %(actor)s::text, cancel_reason = %(reason)s::text
    FROM (SELECT id, state FROM turno.jobs WHERE id = ANY(%(waiting)s::uuid[])) AS old
    WHERE j.id = old.id AND j.state IN ('Scheduled', 'Enqueued')
    RETURNING j.id, old.state AS before
), running AS (
    UPDATE turno.jobs
    SET cancel_requested_at = now(), cancel_requested_by = %(actor)s::text, cancel_reason = %(reason)s::text
    WHERE id = ANY(%(running)s::uuid[]) AND state = 'Processing' AND cancel_requested_at IS NULL
)
INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, detail, actor)
SELECT id, before, 'Cancelled', 'cancelled', %(reason)s::text, %(actor)s::text FROM waiting ORDER BY id
"""
# From a final state: a new token, attempts from zero; executions and history go on. Another active job of the same
# unique key, here or in the same call, keeps its place.
REQUEUE = f"""
WITH wanted AS (
    SELECT j.id, j.state AS before,
           row_number() OVER (PARTITION BY j.unique_key, CASE WHEN j.unique_key IS NULL THEN j.id END ORDER BY j.id)
               AS place
    FROM turno.jobs AS j
    WHERE j.id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (
        SELECT FROM turno.jobs AS rival
        WHERE rival.unique_key = j.unique_key AND rival.id <> j.id
          AND rival.state IN ('Scheduled', 'Enqueued', 'Processing')
    )
), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Enqueued', dispatch_id = gen_random_uuid(), announced_at = NULL, enqueued_at = now(),
        finished_at = NULL, attempts_used = 0, lost_count = 0, progress = 0, stage = '', result = NULL,
        failure_kind = NULL, error_type = NULL, error_message = NULL,
        cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL
    FROM wanted AS w
    WHERE j.id = w.id AND w.place = 1 AND j.state IN ('Failed', 'Cancelled')
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority, w.before
), letters AS (
    UPDATE turno.dead_letters AS d
    SET resolved_at = now(), resolved_how = 'requeued', resolved_by = %(actor)s::text
    FROM moved AS m WHERE d.job_id = m.id AND d.resolved_at IS NULL
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, actor)
    SELECT id, before, 'Enqueued', 'requeued', %(actor)s::text FROM moved ORDER BY id
) {dispatch("moved")}
SELECT id, queue FROM moved
"""
# COALESCE: see PROMOTE.
RUN_NOW = f"""
WITH moved AS (
    UPDATE turno.jobs
    SET state = 'Enqueued', dispatch_id = gen_random_uuid(), announced_at = NULL, enqueued_at = now(),
        waiting_for = NULL, run_at = NULL
    WHERE id = ANY(%(ids)s::uuid[]) AND COALESCE(state, '') = 'Scheduled' AND run_at IS NOT NULL
    RETURNING id, state, dispatch_id, queue, priority
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, actor)
    SELECT id, 'Scheduled', 'Enqueued', 'run_now', %(actor)s::text FROM moved ORDER BY id
) {dispatch("moved")}
SELECT queue FROM moved
"""
DELETE = """
DELETE FROM turno.jobs
WHERE id = ANY(%(ids)s::uuid[]) AND state IN ('Succeeded', 'Failed', 'Cancelled')
"""


def _locked(cursor: CursorWrapper, ids: Sequence[UUID]) -> dict[UUID, tuple[State, UUID | None, bool, str | None]]:
    rows: list[tuple[Any, ...]] = fetch(cursor, LOCK, {"ids": list(ids)})
    return {id_: (State(state), *rest) for id_, state, *rest in rows}


def _missing(id_: UUID) -> Verdict:
    return Verdict(id_, applied=False, state=None, problem="not_found")


def cancel(
    ids: Sequence[UUID], *, actor: str | None = None, reason: str | None = None, using: str = "default"
) -> list[Verdict]:
    """Cancel jobs: waiting ones at once, running ones by request (their worker is told, its settle does the rest).

    A second cancel of a running job changes nothing and is answered like the first.
    """

    def work(cursor: CursorWrapper) -> list[Verdict]:
        locked = keys.lock_waiting(cursor, ids)
        found = _locked(cursor, ids)
        waiting = [i for i, (state, *_) in found.items() if state in (State.SCHEDULED, State.ENQUEUED)]
        running = {i: worker for i, (state, worker, *_) in found.items() if state is State.PROCESSING}
        if waiting or running:
            params = {"waiting": waiting, "running": list(running), "actor": actor, "reason": reason}
            cursor.execute(CANCEL, params)
            asked = (orjson.dumps({"cancel": str(i), "worker": str(w)}).decode() for i, w in running.items())
            notify(cursor, CONTROL, asked)
            # Not only those whose slot came free: one that was about to take a slot leaves room too.
            pass_on(cursor, [*keys.release(cursor, waiting), *locked], locked)
            about_to = {key for state, _, _, key in found.values() if state is State.ENQUEUED and key is not None}
            tell_of_keys(cursor, about_to, locked)
            after_ends(cursor, waiting)
        verdicts = []
        for id_ in ids:
            if id_ not in found:
                verdicts.append(_missing(id_))
            elif id_ in running:
                verdicts.append(Verdict(id_, applied=True, state=State.PROCESSING, requested=True))
            elif found[id_][0] in (State.SCHEDULED, State.ENQUEUED):
                verdicts.append(Verdict(id_, applied=True, state=State.CANCELLED))
            else:
                verdicts.append(Verdict(id_, applied=False, state=found[id_][0], problem="state"))
        return verdicts

    return in_transaction(using, work)


def requeue(ids: Sequence[UUID], *, actor: str | None = None, using: str = "default") -> list[Verdict]:
    """Put Failed and Cancelled jobs back into their queue, and resolve their pending dead letters.

    A job whose unique key another active job holds is refused ("unique_key") and stops no other. One whose parents have
    not all ended is parked until they have; those that had failed by now cancel it no more.
    """

    def work(cursor: CursorWrapper) -> list[Verdict]:
        lock_parents(cursor, ids)
        found = _locked(cursor, ids)
        eligible = [i for i, (state, *_) in found.items() if state in (State.FAILED, State.CANCELLED)]
        params = {"ids": eligible, "actor": actor, "broker": broker()}
        moved = dict(fetch(cursor, REQUEUE, params)) if eligible else {}
        parked = park_children(cursor, moved) if moved else set()
        notify_all(cursor, enqueued(queue for id_, queue in moved.items() if id_ not in parked))
        verdicts = []
        for id_ in ids:
            if id_ not in found:
                verdicts.append(_missing(id_))
            elif id_ in moved:
                state = State.SCHEDULED if id_ in parked else State.ENQUEUED
                verdicts.append(Verdict(id_, applied=True, state=state))
            else:
                problem = "unique_key" if id_ in eligible else "state"
                verdicts.append(Verdict(id_, applied=False, state=found[id_][0], problem=problem))
        return verdicts

    for _ in range(TRIES):
        try:
            return in_transaction(using, work)
        except IntegrityError:  # a rival with the same unique key came between our look and our write
            if len(ids) > 1:
                return [verdict for id_ in ids for verdict in requeue([id_], actor=actor, using=using)]
    return in_transaction(using, work)


def run_now(ids: Sequence[UUID], *, actor: str | None = None, using: str = "default") -> list[Verdict]:
    """Enqueue Scheduled jobs without waiting for their instant; a parked job is refused ("gate")."""

    def work(cursor: CursorWrapper) -> list[Verdict]:
        found = _locked(cursor, ids)
        timed = [i for i, (state, _, parked, _) in found.items() if state is State.SCHEDULED and not parked]
        if timed:
            params = {"ids": timed, "actor": actor, "broker": broker()}
            notify_all(cursor, enqueued(queue for (queue,) in fetch(cursor, RUN_NOW, params)))
        verdicts = []
        for id_ in ids:
            if id_ not in found:
                verdicts.append(_missing(id_))
            elif id_ in timed:
                verdicts.append(Verdict(id_, applied=True, state=State.ENQUEUED))
            else:
                state = found[id_][0]
                problem = "gate" if state is State.SCHEDULED else "state"
                verdicts.append(Verdict(id_, applied=False, state=state, problem=problem))
        return verdicts

    return in_transaction(using, work)


def delete(ids: Sequence[UUID], *, using: str = "default") -> list[Verdict]:
    """Delete finished jobs with their history; an active job is refused ("state")."""

    def work(cursor: CursorWrapper) -> list[Verdict]:
        found = _locked(cursor, ids)
        final = [i for i, (state, *_) in found.items() if state in (State.SUCCEEDED, State.FAILED, State.CANCELLED)]
        if final:
            after_ends(cursor, final)  # they were looked at, unless whoever was to look was lost
            unlink(cursor, final)
            cursor.execute(DELETE, {"ids": final})
        return [
            _missing(id_)
            if id_ not in found
            else Verdict(id_, id_ in final, found[id_][0], None if id_ in final else "state")
            for id_ in ids
        ]

    return in_transaction(using, work)
