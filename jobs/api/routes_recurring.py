"""Recurring jobs: list, create or change by name, try a schedule, trigger, enable, disable, delete."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja import Query, Router
from ninja.responses import Status

from jobs import schedules
from jobs.api.openapi import BODY, COMMON, CONFLICT, MISSING
from jobs.api.queryparams import refuse_strange
from jobs.api.schemas_recurring import (
    LAST_RUNS,
    NEXT_RUNS,
    PreviewOut,
    PreviewQuery,
    RecurringDetailOut,
    RecurringIn,
    RecurringListOut,
    RecurringQuery,
    TriggeredOut,
)
from jobs.errors import Invalid
from jobs.queries import schedulelist
from jobs.queries import schedules as rows
from jobs.queries.payloadtext import masked

router = Router(tags=["recurring jobs"])


def _actor(request: HttpRequest) -> str:
    return str(getattr(request, "auth", ""))


def _shown(row: rows.ScheduleRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in RecurringDetailOut.model_fields if hasattr(row, name)}


def _detail(id_: UUID) -> dict[str, Any]:
    row = rows.schedule(id_)
    if row is None:
        raise schedules.missing(id_)
    return {
        **_shown(row),
        "payload": masked(row.type, row.payload),
        "next_runs": row.upcoming(NEXT_RUNS),
        "last_runs": rows.ended(id_, LAST_RUNS),
    }


def _cursor(text: str) -> schedulelist.ScheduleCursor:
    """In an address a name may stand that fits none: it travels as hexadecimal digits."""
    try:
        return schedulelist.ScheduleCursor.parse(bytes.fromhex(text).decode())
    except ValueError:
        told = _("This is no cursor of this list.")
        raise Invalid(told, errors={"cursor": [told]}) from None


@router.get(
    "",
    response={200: RecurringListOut, **COMMON},
    operation_id="listRecurringJobs",
    summary=gettext_lazy("List recurring jobs, the next one to run first"),
)
def list_recurring(request: HttpRequest, filters: Query[RecurringQuery]) -> dict[str, Any]:
    refuse_strange(request, RecurringQuery)
    wanted = schedulelist.ScheduleFilter(text=filters.search, shown=filters.shown or "")
    after = _cursor(filters.cursor) if filters.cursor is not None else None
    page = schedulelist.schedule_list(wanted, after, size=filters.page_size)
    return {
        "items": [_shown(row) for row in rows.schedules([row.id for row in page.rows])],
        "next_cursor": None if page.after is None else str(page.after).encode().hex(),
        "page_size": filters.page_size,
    }


@router.put(
    "",
    response={200: RecurringDetailOut, 201: RecurringDetailOut, **COMMON, **BODY, **CONFLICT},
    operation_id="putRecurringJob",
    summary=gettext_lazy("Create the recurring job of a name, or change it; the last one wins"),
)
def put_recurring(request: HttpRequest, body: RecurringIn) -> Status[Any]:
    wanted = schedules.Wanted(**body.model_dump(exclude={"enabled"}))
    done = schedules.put(wanted, actor=_actor(request), enabled=body.enabled)
    return Status(201 if done.created else 200, _detail(done.id))


@router.get(
    "/preview",
    response={200: PreviewOut, **COMMON},
    operation_id="previewSchedule",
    summary=gettext_lazy("What a schedule means, in words and in its next instants; nothing is saved"),
)
def preview_schedule(request: HttpRequest, asked: Query[PreviewQuery]) -> dict[str, Any]:
    refuse_strange(request, PreviewQuery)
    found = schedules.preview(asked.cron, asked.timezone, after=asked.from_, count=asked.count)
    return {
        "cron": found.schedule.text,
        "timezone": found.schedule.timezone,
        "words": found.words,
        "instants": found.instants,
    }


@router.get(
    "/{id}",
    response={200: RecurringDetailOut, **COMMON, **MISSING},
    operation_id="getRecurringJob",
    summary=gettext_lazy("A recurring job, its next runs and its last ones"),
)
def get_recurring(request: HttpRequest, id: UUID) -> dict[str, Any]:
    return _detail(id)


@router.delete(
    "/{id}",
    response={204: None, **COMMON, **MISSING, **CONFLICT},
    operation_id="deleteRecurringJob",
    summary=gettext_lazy("Delete a recurring job; the jobs that it made stay"),
)
def delete_recurring(request: HttpRequest, id: UUID) -> Status[None]:
    schedules.delete(id, actor=_actor(request))
    return Status(204, None)


@router.post(
    "/{id}/trigger",
    response={201: TriggeredOut, **COMMON, **MISSING, **CONFLICT},
    operation_id="triggerRecurringJob",
    summary=gettext_lazy("Make a job of it now; its schedule stays as it is"),
)
def trigger_recurring(request: HttpRequest, id: UUID) -> Status[Any]:
    return Status(201, {"job_id": schedules.trigger(id, actor=_actor(request))})


@router.post(
    "/{id}/enable",
    response={200: RecurringDetailOut, **COMMON, **MISSING, **CONFLICT},
    operation_id="enableRecurringJob",
    summary=gettext_lazy("Let it fire, from now on; also after an error"),
)
def enable_recurring(request: HttpRequest, id: UUID) -> dict[str, Any]:
    schedules.enable(id, actor=_actor(request))
    return _detail(id)


@router.post(
    "/{id}/disable",
    response={200: RecurringDetailOut, **COMMON, **MISSING},
    operation_id="disableRecurringJob",
    summary=gettext_lazy("Let it fire no more; the jobs that it made stay"),
)
def disable_recurring(request: HttpRequest, id: UUID) -> dict[str, Any]:
    schedules.disable(id, actor=_actor(request))
    return _detail(id)
