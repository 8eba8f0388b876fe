"""One job: its row, its executions, its time line, the lines it wrote."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.conf import conf
from jobs.models import Job, JobAttempt, JobLog, JobStateChange
from jobs.queries.unserved import grace
from jobs.serving import LIVE
from jobs.states import FINAL, State, Waiting

ATTEMPTS_SHOWN = 200
CHANGES_SHOWN = 500
SERVED = f"""
WITH {LIVE}
SELECT count(*) > 0, count(*) FILTER (WHERE %(type)s = ANY (types)) > 0 FROM live WHERE queue = %(queue)s
"""


@dataclass(frozen=True, slots=True)
class Detail:
    """A job's columns with its last executions and state changes, oldest first.

    `queue_served` says whether a live worker serves its queue, `type_served` whether one of those has its type loaded
    too; None when the job has ended. `fails_in`: seconds until it ends Failed because nobody has it, None where that
    is not to come.
    """

    job: dict[str, Any]
    attempts: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    queue_served: bool | None
    type_served: bool | None
    fails_in: float | None


@dataclass(frozen=True, slots=True)
class LogPage:
    """Log lines, oldest first; `next_after` is what to ask with for the following ones, None at the end."""

    items: list[dict[str, Any]]
    next_after: int | None


def served(queue: str, type_name: str) -> tuple[bool, bool]:
    """Whether a live worker serves this queue, and whether one of those has this type; by the database's clock."""
    with connections["default"].cursor() as cursor:
        cursor.execute(SERVED, {"silent": conf().worker.silent_after, "queue": queue, "type": type_name})
        by_queue, by_type = cursor.fetchone()
        return by_queue, by_type


def detail(id_: UUID) -> Detail | None:
    """Everything about a job except its log; None when there is no such job."""
    job = Job.objects.filter(id=id_).values().first()
    if job is None:
        return None
    attempts = list(JobAttempt.objects.filter(job_id=id_).order_by("-ordinal").values()[:ATTEMPTS_SHOWN])
    changes = list(JobStateChange.objects.filter(job_id=id_).order_by("-id").values()[:CHANGES_SHOWN])
    by_queue, by_type = (None, None) if State(job["state"]) in FINAL else served(job["queue"], job["type"])
    waits = job["waiting_for"] == Waiting.UNKNOWN_TYPE
    left = grace(job["queue"], job["type"], job["enqueued_at"]) if waits else None
    return Detail(job, attempts[::-1], changes[::-1], by_queue, by_type, left.fails_in if left is not None else None)


def logs(id_: UUID, *, after: int = 0, execution: int | None = None, limit: int = 500) -> LogPage | None:
    """The lines that a job's executions wrote, after the line numbered `after`; None when there is no such job."""
    if not Job.objects.filter(id=id_).exists():
        return None
    rows = JobLog.objects.filter(job_id=id_, id__gt=after)
    if execution is not None:
        rows = rows.filter(execution=execution)
    found = list(rows.order_by("id").values("id", "execution", "number", "level", "message", "at")[: limit + 1])
    items = found[:limit]
    return LogPage(items, items[-1]["id"] if len(found) > limit else None)
