"""Jobs: enqueue, list, look at one, read its log."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy, gettext_noop
from ninja import Query, Router
from ninja.params import functions as params
from ninja.responses import Status

from jobs import operations, queries
from jobs.api import shapes
from jobs.api.openapi import BODY, COMMON, CONFLICT, MISSING, PROBLEM
from jobs.api.queryparams import refuse_strange
from jobs.api.schemas_in import BatchIn, JobIn, JobsQuery, LogsQuery
from jobs.api.schemas_out import BatchOut, EnqueuedOut, JobDetailOut, LogsOut, PageOut
from jobs.bounds import KEY_LENGTH
from jobs.enqueue import Enqueued, JobRequest, enqueue, enqueue_many

router = Router(tags=["jobs"])

ENQUEUE_ANSWERS = {**COMMON, **BODY, **CONFLICT, 422: PROBLEM}
KEY: Any = params.Header(
    None,
    alias="Idempotency-Key",
    min_length=1,
    max_length=KEY_LENGTH,
    pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$",
    description=gettext_noop(
        "A repeat with the same key and body answers with the first job; another body is refused (422)."
    ),
)


def _options(job: JobIn) -> dict[str, Any]:
    given = job.model_dump(exclude={"tags"})
    return {**given, "tags": tuple(job.tags)}


def _answer(response: HttpResponse, enqueued: list[Enqueued]) -> int:
    """The status: 201 when anything new was made. Marks an answer that only repeats an earlier one."""
    if all(one.replayed for one in enqueued):
        response["Idempotent-Replayed"] = "true"
    return 200 if all(one.replayed or one.duplicate for one in enqueued) else 201


def _enqueued(one: Enqueued) -> EnqueuedOut:
    return EnqueuedOut(id=one.id, state=one.state, duplicate=one.duplicate)


@router.post(
    "",
    response={201: EnqueuedOut, 200: EnqueuedOut, **ENQUEUE_ANSWERS},
    operation_id="enqueueJob",
    summary=gettext_lazy("Enqueue a job"),
)
def enqueue_job(
    request: HttpRequest, response: HttpResponse, job: JobIn, idempotency_key: str | None = KEY
) -> Status[EnqueuedOut]:
    enqueued = enqueue(**_options(job), idempotency_key=idempotency_key, route="POST /api/jobs")
    response["Location"] = f"/api/jobs/{enqueued.id}"
    return Status(_answer(response, [enqueued]), _enqueued(enqueued))


@router.post(
    "/batch",
    response={201: BatchOut, 200: BatchOut, **ENQUEUE_ANSWERS},
    operation_id="enqueueJobs",
    summary=gettext_lazy("Enqueue up to 1000 jobs, all or none"),
)
def enqueue_jobs(
    request: HttpRequest, response: HttpResponse, batch: BatchIn, idempotency_key: str | None = KEY
) -> Status[BatchOut]:
    requests = [JobRequest(**_options(job)) for job in batch.jobs]
    enqueued = enqueue_many(requests, idempotency_key=idempotency_key, route="POST /api/jobs/batch")
    return Status(_answer(response, enqueued), BatchOut(items=[_enqueued(one) for one in enqueued]))


@router.get(
    "",
    response={200: PageOut, **COMMON},
    operation_id="listJobs",
    summary=gettext_lazy("List jobs"),
)
def list_jobs(request: HttpRequest, filters: Query[JobsQuery]) -> dict[str, Any]:
    refuse_strange(request, JobsQuery)
    wanted = queries.JobFilter(
        state=filters.state,
        type=filters.type,
        queue=filters.queue,
        tag=filters.tag,
        search=filters.search,
        created_from=filters.created_from,
        created_to=filters.created_to,
    )
    after = queries.Cursor.parse(filters.cursor) if filters.cursor is not None else None
    page = queries.page(wanted, size=filters.page_size, order=filters.order, after=after, number=filters.page)
    return {
        "items": [shapes.job(row) for row in page.items],
        "next_cursor": str(page.next_cursor) if page.next_cursor is not None else None,
        "page": filters.page if after is None else None,
        "page_size": filters.page_size,
    }


@router.get(
    "/{id}",
    response={200: JobDetailOut, **COMMON, **MISSING},
    operation_id="getJob",
    summary=gettext_lazy("A job with its attempts and its time line"),
)
def get_job(request: HttpRequest, id: UUID) -> dict[str, Any]:
    found = queries.detail(id)
    if found is None:
        raise operations.missing(id)
    return shapes.detail(found)


@router.get(
    "/{id}/logs",
    response={200: LogsOut, **COMMON, **MISSING},
    operation_id="getJobLogs",
    summary=gettext_lazy("The lines that a job wrote"),
)
def get_logs(request: HttpRequest, id: UUID, lines: Query[LogsQuery]) -> dict[str, Any]:
    refuse_strange(request, LogsQuery)
    found = queries.logs(id, after=lines.after, execution=lines.execution, limit=lines.limit)
    if found is None:
        raise operations.missing(id)
    return {"items": found.items, "next_after": found.next_after}
