"""What people do to one job. On the router of `routes_jobs`: ninja keeps the methods of one address together."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from ninja.responses import Status

from jobs import operations
from jobs.api.openapi import BODY, COMMON, CONFLICT, MISSING
from jobs.api.routes_jobs import router
from jobs.api.schemas_flow import PriorityIn
from jobs.api.schemas_in import CancelIn
from jobs.api.schemas_out import ActOut
from jobs.outcomes import Verdict

__all__ = ["router"]

ANSWERS = {200: ActOut, **COMMON, **MISSING, **CONFLICT}


def _actor(request: HttpRequest) -> str:
    return str(getattr(request, "auth", ""))


def _done(verdict: Verdict) -> dict[str, Any]:
    return {"id": verdict.id, "state": verdict.state, "requested": verdict.requested}


@router.post(
    "/{id}/cancel",
    response={**ANSWERS, **BODY},
    operation_id="cancelJob",
    summary=gettext_lazy("Cancel a job: at once while it waits, by request while it runs"),
)
def cancel_job(request: HttpRequest, id: UUID, why: CancelIn | None = None) -> dict[str, Any]:
    reason = why.reason if why is not None else None
    return _done(operations.cancel(id, actor=_actor(request), reason=reason))


@router.post(
    "/{id}/requeue",
    response=ANSWERS,
    operation_id="requeueJob",
    summary=gettext_lazy("Run a failed or cancelled job again"),
)
def requeue_job(request: HttpRequest, id: UUID) -> dict[str, Any]:
    return _done(operations.requeue(id, actor=_actor(request)))


@router.post(
    "/{id}/run-now",
    response=ANSWERS,
    operation_id="runJobNow",
    summary=gettext_lazy("Start a scheduled job without waiting for its instant"),
)
def run_job_now(request: HttpRequest, id: UUID) -> dict[str, Any]:
    return _done(operations.run_now(id, actor=_actor(request)))


@router.post(
    "/{id}/priority",
    response={**ANSWERS, **BODY},
    operation_id="setJobPriority",
    summary=gettext_lazy("Change the priority of a job that waits"),
)
def set_job_priority(request: HttpRequest, id: UUID, body: PriorityIn) -> dict[str, Any]:
    return _done(operations.reprioritise(id, body.priority, actor=_actor(request)))


@router.delete(
    "/{id}",
    response={204: None, **COMMON, **MISSING, **CONFLICT},
    operation_id="deleteJob",
    summary=gettext_lazy("Delete a finished job with its history"),
)
def delete_job(request: HttpRequest, id: UUID) -> Status[None]:
    operations.delete(id)
    return Status(204, None)
