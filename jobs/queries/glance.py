"""One job as its page shows it: the row with its ages by the database's clock, executions, time line, dead letter."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.conf import conf
from jobs.models import JobAttempt, JobStateChange
from jobs.queries.onejob import ATTEMPTS_SHOWN, CHANGES_SHOWN

SIBLINGS = 1000
COLUMNS = """j.id, j.type, j.queue, j.state, j.priority, j.executions, j.attempts_used, j.max_attempts, j.lost_count,
    j.at_most_once, j.timeout, j.claimed_at, j.started_at, j.slot, j.worker_id, j.worker_label, j.lease_expires_at,
    j.progress, j.stage, j.result, j.error_type, j.error_message, j.failure_kind, j.run_at, j.not_before, j.waiting_for,
    j.gate, j.concurrency_key, j.concurrency_limit, j.unique_key, j.idempotency_key, j.origin, j.owner, j.tags,
    j.recurring_job_id, j.fired_for, j.rerun_of, j.cancel_requested_at, j.cancel_requested_by, j.cancel_reason,
    j.created_at, j.enqueued_at, j.finished_at"""
# Ages in seconds by the database's clock: the browser's and this process's may stand elsewhere.
AGES = """
    extract(epoch FROM now() - j.claimed_at)::float8 AS elapsed,
    extract(epoch FROM j.claimed_at - j.enqueued_at)::float8 AS waited,
    extract(epoch FROM now() - j.enqueued_at)::float8 AS enqueued_ago,
    extract(epoch FROM now() - j.finished_at)::float8 AS finished_ago,
    extract(epoch FROM j.lease_expires_at - now())::float8 AS lease_left,
    j.lease_expires_at - make_interval(secs => %(lease)s) AS lease_renewed_at,
    extract(epoch FROM j.run_at - now())::float8 AS due_in,
    extract(epoch FROM now() - j.cancel_requested_at)::float8 AS cancel_ago,
    extract(epoch FROM now() - w.seen_at)::float8 AS worker_seen_ago,
    w.id IS NOT NULL AS worker_known, w.state = 'Offline' AS worker_offline,
    r.name AS recurring_name"""
FROM = """
FROM turno.jobs AS j
LEFT JOIN turno.workers AS w ON w.id = j.worker_id
LEFT JOIN turno.recurring_jobs AS r ON r.id = j.recurring_job_id
WHERE j.id = %(id)s::uuid"""
GLANCE = f"SELECT {COLUMNS}, {AGES} {FROM}"
WHOLE = f"SELECT {COLUMNS}, j.payload, {AGES} {FROM}"
# The last letter, and how many pending ones of other jobs have its cause: at most SIBLINGS are looked at.
LETTER = """
SELECT l.fingerprint, l.resolved_at, l.resolved_how, l.resolved_by, (
    SELECT count(*) FROM (
        SELECT FROM turno.dead_letters AS o
        WHERE o.fingerprint = l.fingerprint AND o.resolved_at IS NULL AND o.job_id <> l.job_id LIMIT %(most)s
    ) AS others
) AS siblings
FROM turno.dead_letters AS l WHERE l.job_id = %(id)s::uuid ORDER BY l.created_at DESC, l.id DESC LIMIT 1
"""
STEPS = "SELECT count(*) FROM turno.job_state_changes WHERE job_id = %(id)s::uuid"


@dataclass(frozen=True, slots=True)
class Letter:
    """A job's last dead letter. `siblings`: pending ones of other jobs with the same cause, counted up to SIBLINGS."""

    fingerprint: str
    resolved_how: str | None
    resolved_by: str | None
    siblings: int


@dataclass(frozen=True, slots=True)
class Glance:
    """A job's columns and ages (`elapsed`, `waited`, `lease_left`, `due_in`, … in seconds, None where they mean
    nothing) with its last executions and state changes, oldest first; `steps` is how many changes there are in all.

    `returns_in` (seconds) is set while its worker gives no sign of life: then recovery takes the job back.
    """

    job: dict[str, Any]
    attempts: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    steps: int
    letter: Letter | None
    returns_in: float | None


def _rows(sql: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _returns_in(job: dict[str, Any]) -> float | None:
    if job["state"] != "Processing":
        return None
    seen = job["worker_seen_ago"]
    if job["worker_known"] and not job["worker_offline"] and seen <= conf().worker.silent_after:
        return None
    return max(0.0, float(job["lease_left"] or 0.0) + conf().recovery.lease_grace_period)


def glance(id_: UUID, *, whole: bool = True) -> Glance | None:
    """What the page shows of a job, without its log; None when there is no such job. `whole`: with its payload."""
    found = _rows(WHOLE if whole else GLANCE, {"id": id_, "lease": conf().worker.lease_duration})
    if not found:
        return None
    job = found[0]
    for column in ("payload", "result", "worker_label"):
        if isinstance(job.get(column), (str, bytes)):
            job[column] = json.loads(job[column])
    attempts = list(JobAttempt.objects.filter(job_id=id_).order_by("-ordinal").values()[:ATTEMPTS_SHOWN])
    changes = list(JobStateChange.objects.filter(job_id=id_).order_by("-id").values()[:CHANGES_SHOWN])
    steps = len(changes)
    if steps == CHANGES_SHOWN:
        steps = _rows(STEPS, {"id": id_})[0]["count"]
    letters = _rows(LETTER, {"id": id_, "most": SIBLINGS}) if job["executions"] or job["failure_kind"] else []
    letter = None
    if letters:
        row = letters[0]
        letter = Letter(row["fingerprint"], row["resolved_how"], row["resolved_by"], row["siblings"])
    return Glance(job, attempts[::-1], changes[::-1], steps, letter, _returns_in(job))
