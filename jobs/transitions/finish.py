"""The end of executions, one statement for a batch: job, attempt, time line, dead letter, messages and metrics.

`settle`, `release`, `expire` and `take_back` decide; this writes, and only where the fence still holds. A pending
cancel request turns every exit but Succeeded into Cancelled, here, on the locked row.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.conf import conf
from jobs.ids import new_id
from jobs.metrics import BUCKETS
from jobs.outcomes import Ending
from jobs.states import FINAL, State
from jobs.transitions import keys
from jobs.transitions.circuits import wake
from jobs.transitions.handover import SPARE, Looked, pass_on, tell
from jobs.transitions.outbox import LETTERED, broker, dispatch, enqueued
from jobs.transitions.parents import ANY_CHILD, after_ends
from jobs.transitions.sql import DUE, filled_arrays, json_text, notify_all
from jobs.transitions.successors import Successors
from jobs.transitions.together import together

COLUMNS = {
    "id": "uuid",
    "dispatch_id": "uuid",
    "worker_id": "uuid",
    "to_state": "text",
    "outcome": "text",
    "reason": "text",
    "counted": "bool",
    "lost": "int",
    "delay": "float8",
    "waiting_for": "text",
    "result": "text",
    "error_type": "text",
    "error_message": "text",
    "stack": "text",
    "fingerprint": "text",
    "failure_kind": "text",
    "duration": "float8",
    "progress": "int",
    "stage": "text",
    "tries": "int",
    "exit_code": "int",
    "signal": "int",
    "peak_memory": "bigint",
    "letter_id": "uuid",
}
HISTOGRAM = ", ".join(f"count(*) FILTER (WHERE bucket = {n})::int" for n in range(len(BUCKETS) + 1))
BOUNDS = ", ".join(f"{bound}::float8" for bound in BUCKETS)
GIVEN = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())

# A breaker's row is locked before the jobs (the order of all verbs): the count makes the plan do so. A probe that ended
# well closes it, whatever else came of it opens it anew. From each end to its job, in the order of the ids: no plan may
# compare each end with each job, as one does that joins the two, and COALESCE keeps it from reading all that runs while
# the statistics are old. The last test says once more what holds anyway: by it the planner expects few rows, and looks
# up each of them below.
FINISH = f"""
WITH probes AS MATERIALIZED (
    SELECT type, probe_job_id FROM turno.circuits
    WHERE state = 'half_open' AND probe_job_id = ANY(%(id)s::uuid[]) ORDER BY type FOR NO KEY UPDATE
), locked AS MATERIALIZED (
    SELECT i.*, j.executions, j.attempts_used, j.max_attempts, j.queue, j.type, j.slot, j.worker_label, j.claimed_at,
           j.enqueued_at, j.cancel_requested_by, j.cancel_reason,
           j.cancel_requested_at IS NOT NULL AND i.to_state <> 'Succeeded' AS cancelled,
           CASE WHEN j.cancel_requested_at IS NOT NULL AND i.to_state <> 'Succeeded' THEN 'Cancelled'
                ELSE i.to_state END AS becomes
    FROM (SELECT * FROM json_to_recordset(%(ends)s::json) AS e({GIVEN}) ORDER BY id) AS i
    CROSS JOIN LATERAL (
        SELECT j.* FROM turno.jobs AS j
        WHERE j.id = i.id AND j.dispatch_id = i.dispatch_id AND j.worker_id = i.worker_id
          AND COALESCE(j.state, '') = 'Processing'
        FOR NO KEY UPDATE OF j
    ) AS j
    WHERE (SELECT count(*) FROM probes) >= 0 AND j.id = i.id
), changed AS (
    UPDATE turno.jobs AS j
    SET state = l.becomes,
        attempts_used = LEAST(j.max_attempts, j.attempts_used + l.counted::int),
        lost_count = j.lost_count + l.lost,
        dispatch_id = CASE WHEN l.becomes = 'Enqueued' THEN gen_random_uuid() END,
        announced_at = NULL, claim_id = NULL, claimed_at = NULL, started_at = NULL, slot = NULL,
        worker_id = NULL, worker_label = NULL, lease_expires_at = NULL,
        enqueued_at = CASE WHEN l.becomes = 'Enqueued' THEN now() ELSE j.enqueued_at END,
        waiting_for = CASE WHEN l.becomes = 'Scheduled' THEN l.waiting_for END,
        run_at = CASE WHEN l.becomes = 'Scheduled' THEN now() + l.delay * interval '1 second' END,
        finished_at = CASE WHEN l.becomes IN ('Succeeded', 'Failed', 'Cancelled') THEN now() END,
        result = CASE WHEN l.becomes IN ('Succeeded', 'Failed') THEN l.result::jsonb END,
        progress = CASE WHEN l.becomes = 'Succeeded' THEN 100
                        WHEN l.becomes IN ('Failed', 'Cancelled') THEN GREATEST(j.progress, COALESCE(l.progress, 0))
                        ELSE 0 END,
        stage = COALESCE(l.stage, j.stage),
        error_type = CASE WHEN l.becomes = 'Succeeded' THEN NULL ELSE COALESCE(l.error_type, j.error_type) END,
        error_message = CASE WHEN l.becomes = 'Succeeded' THEN NULL
                             WHEN l.error_type IS NOT NULL THEN l.error_message ELSE j.error_message END,
        failure_kind = CASE WHEN l.becomes = 'Failed' THEN l.failure_kind END
    FROM locked AS l
    WHERE j.id = l.id AND j.dispatch_id = l.dispatch_id AND j.worker_id = l.worker_id
      AND COALESCE(j.state, '') = 'Processing'
    RETURNING l.*, j.dispatch_id AS drawn, j.priority
) {dispatch("(SELECT id, becomes AS state, drawn AS dispatch_id, queue, priority FROM changed) AS entered")}, ended AS (
    SELECT *, width_bucket(duration, ARRAY[{BOUNDS}]) AS bucket FROM changed
), freed AS (
    DELETE FROM turno.concurrency_slots AS s USING ended AS e
    WHERE s.job_id = e.id AND s.dispatch_id = e.dispatch_id RETURNING s.key_id
), circuits AS (
    UPDATE turno.circuits AS c
    SET state = CASE WHEN e.becomes = 'Succeeded' THEN 'closed' ELSE 'open' END, probe_job_id = NULL,
        probe_deadline = NULL, probe_seconds = NULL,
        closed_at = CASE WHEN e.becomes = 'Succeeded' THEN now() ELSE c.closed_at END,
        retry_at = CASE WHEN e.becomes <> 'Succeeded' THEN now() + c.open_for * interval '1 second' END
    FROM probes AS p JOIN ended AS e ON e.id = p.probe_job_id
    WHERE c.type = p.type AND c.state = 'half_open' AND c.probe_job_id = p.probe_job_id
    RETURNING c.type, c.state
), attempts AS (
    INSERT INTO turno.job_attempts (job_id, ordinal, attempt, tries, counted, dispatch_id, worker_id, worker_name,
        worker_host, worker_pid, worker_version, slot, started_at, ended_at, duration, outcome, error_type,
        error_message, stack, exit_code, signal, peak_memory)
    SELECT id, executions, LEAST(max_attempts, attempts_used + 1), tries, counted, dispatch_id, worker_id,
        worker_label->>'name', worker_label->>'host', (worker_label->>'pid')::int, worker_label->>'version', slot,
        claimed_at, GREATEST(now(), claimed_at), duration,
        CASE WHEN cancelled AND lost = 0 THEN 'Cancelled' ELSE outcome END, error_type, error_message, stack,
        exit_code, signal, peak_memory
    FROM ended
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, detail, worker_id, actor, execution)
    SELECT id, 'Processing', becomes, CASE WHEN cancelled THEN 'cancelled' ELSE reason END,
        CASE WHEN cancelled THEN cancel_reason ELSE left(error_message, 500) END, worker_id,
        CASE WHEN cancelled THEN cancel_requested_by END, executions
    FROM ended ORDER BY id
), letters AS (
    INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, error_type, error_message, stack,
        fingerprint, attempts)
    SELECT letter_id, id, type, queue, failure_kind, error_type, error_message, stack, COALESCE(fingerprint, ''),
        executions
    FROM ended WHERE becomes = 'Failed'
    ON CONFLICT (job_id) WHERE resolved_at IS NULL DO NOTHING
    RETURNING id, job_id, type, queue, failure_kind, error_type, error_message, stack, fingerprint, attempts, created_at
) {LETTERED}, minutes AS (
    INSERT INTO turno.metrics_minute AS m (minute, worker_id, queue, type, succeeded, failed, retried, cancelled,
        lost, duration_sum, wait_sum, durations)
    SELECT date_trunc('minute', now()), worker_id, queue, type,
        count(*) FILTER (WHERE becomes = 'Succeeded'), count(*) FILTER (WHERE becomes = 'Failed'),
        count(*) FILTER (WHERE becomes IN ('Scheduled', 'Enqueued') AND counted),
        count(*) FILTER (WHERE becomes = 'Cancelled'), sum(lost),
        sum(COALESCE(duration, 0)), sum(GREATEST(0, extract(epoch FROM claimed_at - enqueued_at))),
        ARRAY[{HISTOGRAM}]
    FROM ended GROUP BY worker_id, queue, type ORDER BY worker_id, queue, type
    ON CONFLICT (minute, worker_id, queue, type) DO UPDATE
    SET succeeded = m.succeeded + EXCLUDED.succeeded, failed = m.failed + EXCLUDED.failed,
        retried = m.retried + EXCLUDED.retried, cancelled = m.cancelled + EXCLUDED.cancelled,
        lost = m.lost + EXCLUDED.lost, duration_sum = m.duration_sum + EXCLUDED.duration_sum,
        wait_sum = m.wait_sum + EXCLUDED.wait_sum,
        durations = (SELECT array_agg(a.n + b.n ORDER BY place)
                     FROM unnest(m.durations) WITH ORDINALITY AS a(n, place)
                     JOIN unnest(EXCLUDED.durations) WITH ORDINALITY AS b(n, place) USING (place))
)
SELECT id, dispatch_id, becomes, queue, executions,
    (SELECT c.type FROM circuits AS c WHERE c.type = ended.type AND c.state = 'closed'),
    (SELECT array_agg(key_id) FROM freed)
FROM ended ORDER BY id
"""
# What FINISH itself can't see: whether any of the jobs has children, and how many slots of these executions are there
# all the same. They were given while the end waited for the row, by who set a limit for their type.
SLOTS_LEFT = """
SELECT count(*) FROM turno.concurrency_slots
WHERE job_id = ANY(%(ended)s::uuid[]) AND dispatch_id = ANY(%(tokens)s::uuid[])
"""
LEFT_BEHIND = f"SELECT ({ANY_CHILD}), ({SLOTS_LEFT})"


@dataclass(slots=True, unsafe_hash=True)
class Finished:
    """A job whose execution (token `dispatch_id`) was ended by `finish`, and the state that it has now."""

    id: UUID
    dispatch_id: UUID
    state: State
    queue: str
    execution: int


def seconds(measured: float | None) -> float | None:
    """A measured duration as it may be stored; None when it is no duration (NaN would spoil every sum it enters)."""
    return float(measured) if measured is not None and math.isfinite(measured) and measured >= 0 else None


def given(endings: Sequence[tuple[UUID, Ending]]) -> dict[str, Any]:
    """The parameters of FINISH for these ends, each as (worker that owned it, ending): a JSON list of objects in which
    fields without a value are left out. Arrays by column cost the client several times as much."""
    rows = []
    for worker_id, e in endings:
        row: dict[str, Any] = {
            "id": e.id, "dispatch_id": e.dispatch_id, "worker_id": worker_id, "to_state": e.to, "outcome": e.outcome,
            "reason": e.reason, "counted": e.counted, "lost": int(e.lost), "delay": e.delay,
            "waiting_for": e.waiting_for, "result": e.result, "failure_kind": e.failure_kind,
            "duration": seconds(e.duration), "progress": e.progress, "stage": e.stage, "tries": e.tries,
            "exit_code": e.exit_code, "signal": e.signal, "peak_memory": e.peak_memory,
        }  # fmt: skip
        if (error := e.error) is not None:
            row |= {"error_type": error.type, "error_message": error.message, "stack": error.stack}
            row["fingerprint"] = error.fingerprint
        if e.to is State.FAILED:
            row["letter_id"] = new_id()
        rows.append({name: value for name, value in row.items() if value is not None})
    return {"id": [e.id for _, e in endings], "ends": json_text(rows)}


def finish(
    cursor: CursorWrapper,
    endings: Sequence[tuple[UUID, Ending]],
    *,
    locked: Collection[int] | None = None,
    successors: Successors | None = None,
) -> list[Finished]:
    """Write the ends of executions, each as (worker that owned it, ending); wakes the queues it enqueued to.

    Slots of concurrency keys are handed over to who waits for them (`successors` start at once), children are looked at
    whose last parent ended. Keys are locked before jobs: whoever has locked the jobs has locked these keys before, and
    says which.

    Returns those whose fence held; the others were changed by nobody here.
    """
    params = given(endings) | {"broker": broker()}
    tokens = filled_arrays(("id", "token"), [(e.id, e.dispatch_id) for _, e in endings])
    with together(cursor) as said:
        if locked is None:
            held = said.pose(keys.LOCK_HELD, tokens)
        written = said.pose(FINISH, params)
        left = said.pose(LEFT_BEHIND, {"ended": tokens["id"], "tokens": tokens["token"]})
        looked = Looked.at(said, None, 1 + SPARE) if successors and locked is None else None
    if locked is None:
        locked = {key for (key,) in held}
    found = [Finished(id_, token, State(state), queue, n) for id_, token, state, queue, n, *_ in written]
    if written and written[0][6]:
        if successors:
            successors.free(f.dispatch_id for f in found)
        pass_on(cursor, written[0][6], locked, successors, looked)
    if closed := sorted({type_ for *_, type_, _freed in written if type_ is not None}):
        wake(cursor, limit=conf().recovery.batch_size, types=closed)
    soon = {e.dispatch_id for _, e in endings if e.delay is not None and e.delay <= conf().scheduler.interval}
    due = any(f.state is State.SCHEDULED and f.dispatch_id in soon for f in found)
    failed = any(f.state is State.FAILED for f in found)
    again = enqueued((f.queue for f in found if f.state is State.ENQUEUED), letters=failed)
    notify_all(cursor, [*again, *([(DUE, "")] if due else [])])
    [(children, slots)] = left
    if slots and found:
        tell(cursor, set(keys.release(cursor, [f.id for f in found])))
    if children:
        after_ends(cursor, [f.id for f in found if f.state in FINAL])
    return found
