"""Acts over many jobs: what one would do, begin it, how far it is, stop it. Thin over `jobs.bulk`."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from ninja import Router
from ninja.responses import Status

from jobs import bulk, queries
from jobs.api.openapi import BODY, COMMON, CONFLICT, MISSING
from jobs.api.schemas_bulk import BulkCancelIn, BulkIn, BulkJobsIn, BulkPreviewOut, BulkRunOut
from jobs.bulk import Act, AnyFilter, Target

router = Router(tags=["jobs"])
runs = Router(tags=["jobs"])

ANSWERS = {200: BulkPreviewOut, 202: BulkRunOut, **COMMON, **BODY, **CONFLICT}
RUN = {200: BulkRunOut, **COMMON, **MISSING}


def begin(
    request: HttpRequest, act: Act, target: Target, body: BulkIn, wanted: AnyFilter | None, *, reason: str | None = None
) -> Status[Any]:
    """A dry run's answer (200), or the run that was begun (202)."""
    if body.dry_run:
        found = bulk.preview(act, target, filter=wanted, ids=body.ids, before=body.before)
        return Status(200, BulkPreviewOut.model_validate(found))
    actor = str(getattr(request, "auth", ""))
    id_ = UUID(body.id) if body.id is not None else None
    run = bulk.start(act, target, ids=body.ids, filter=wanted, before=body.before, actor=actor, reason=reason, id=id_)
    return Status(202, BulkRunOut.model_validate(run))


def _jobs(request: HttpRequest, act: Act, body: BulkJobsIn, reason: str | None = None) -> Status[Any]:
    wanted = queries.JobFilter(**body.filter.given()) if body.filter is not None else None
    return begin(request, act, Target.JOBS, body, wanted, reason=reason)


@router.post(
    "/cancel",
    response=ANSWERS,
    operation_id="cancelJobs",
    summary=gettext_lazy("Cancel many jobs, by ids or by filter"),
)
def cancel_jobs(request: HttpRequest, body: BulkCancelIn) -> Status[Any]:
    return _jobs(request, Act.CANCEL, body, body.reason)


@router.post(
    "/requeue",
    response=ANSWERS,
    operation_id="requeueJobs",
    summary=gettext_lazy("Run many failed or cancelled jobs again, by ids or by filter"),
)
def requeue_jobs(request: HttpRequest, body: BulkJobsIn) -> Status[Any]:
    return _jobs(request, Act.REQUEUE, body)


@router.post(
    "/delete",
    response=ANSWERS,
    operation_id="deleteJobs",
    summary=gettext_lazy("Delete many finished jobs with their history, by ids or by filter"),
)
def delete_jobs(request: HttpRequest, body: BulkJobsIn) -> Status[Any]:
    return _jobs(request, Act.DELETE, body)


@runs.get(
    "/{id}",
    response=RUN,
    operation_id="getBulkRun",
    summary=gettext_lazy("How far an act over many is"),
)
def get_run(request: HttpRequest, id: UUID) -> Any:
    return BulkRunOut.model_validate(bulk.get(id))


@runs.post(
    "/{id}/stop",
    response=RUN,
    operation_id="stopBulkRun",
    summary=gettext_lazy("Stop an act over many after the batch that is under way"),
)
def stop_run(request: HttpRequest, id: UUID) -> Any:
    return BulkRunOut.model_validate(bulk.stop(id))
