"""Flow control: pauses, the settings of queues, the limits of types."""

from typing import Annotated, Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from ninja import Path, Query, Router
from ninja.responses import Status
from pydantic import StringConstraints

from jobs import bounds, flow, queries
from jobs.api.openapi import BODY, COMMON, MISSING
from jobs.api.queryparams import refuse_strange
from jobs.api.schemas_flow import (
    LimitsIn,
    LimitsOut,
    PauseIn,
    PauseOut,
    PauseQuery,
    PausesOut,
    PauseWhyIn,
    QueueIn,
    QueueSettingsOut,
)

pauses = Router(tags=["flow"])
router = Router(tags=["flow"])
QueueName = Annotated[str, StringConstraints(pattern=bounds.QUEUE_PATTERN)]
TypeName = Annotated[str, StringConstraints(pattern=bounds.TYPE_PATTERN)]
PAUSED: dict[int, Any] = {200: PauseOut, **COMMON, **BODY}
RESUMED: dict[int, Any] = {204: None, **COMMON, **MISSING}


def _actor(request: HttpRequest) -> str:
    return str(getattr(request, "auth", ""))


def _pause(request: HttpRequest, scope: str, value: str, why: PauseWhyIn | None) -> flow.Pause:
    why = why if why is not None else PauseWhyIn()
    return flow.pause(scope, value, reason=why.reason, until=why.until, actor=_actor(request))


def _resume(request: HttpRequest, scope: str, value: str) -> Status[None]:
    flow.resume(scope, value, actor=_actor(request))
    return Status(204, None)


@pauses.get(
    "",
    response={200: PausesOut, **COMMON},
    operation_id="listPauses",
    summary=gettext_lazy("What is paused: queues, types, tags and concurrency keys"),
)
def list_pauses(request: HttpRequest) -> dict[str, Any]:
    return {"items": queries.pauses()}


@pauses.post(
    "",
    response=PAUSED,
    operation_id="pause",
    summary=gettext_lazy("Pause a queue, a type, a tag or a concurrency key"),
    description=gettext_lazy("What runs goes on. One that is paused already gets the new reason and end."),
)
def pause(request: HttpRequest, body: PauseIn) -> flow.Pause:
    return _pause(request, body.scope, body.value, body)


@pauses.delete(
    "",
    response=RESUMED,
    operation_id="resume",
    summary=gettext_lazy("Lift a pause: what it held back goes on, by priority and age"),
)
def resume(request: HttpRequest, which: Query[PauseQuery]) -> Status[None]:
    refuse_strange(request, PauseQuery)
    return _resume(request, which.scope, which.value)


@router.post("/queues/{name}/pause", response=PAUSED, operation_id="pauseQueue", summary=gettext_lazy("Pause a queue"))
def pause_queue(request: HttpRequest, name: Path[QueueName], why: PauseWhyIn | None = None) -> flow.Pause:
    return _pause(request, "queue", name, why)


@router.post(
    "/queues/{name}/resume", response=RESUMED, operation_id="resumeQueue", summary=gettext_lazy("Resume a queue")
)
def resume_queue(request: HttpRequest, name: Path[QueueName]) -> Status[None]:
    return _resume(request, "queue", name)


@router.put(
    "/queues/{name}",
    response={200: QueueSettingsOut, **COMMON, **BODY},
    operation_id="setQueue",
    summary=gettext_lazy("Set the slots that each worker has for a queue, and the priority of its new jobs"),
)
def set_queue(request: HttpRequest, name: Path[QueueName], body: QueueIn) -> flow.QueueSettings:
    return flow.set_queue(name, actor=_actor(request), **body.model_dump(exclude_unset=True))


@router.post(
    "/job-types/{name}/pause", response=PAUSED, operation_id="pauseJobType", summary=gettext_lazy("Pause a job type")
)
def pause_type(request: HttpRequest, name: Path[TypeName], why: PauseWhyIn | None = None) -> flow.Pause:
    return _pause(request, "type", name, why)


@router.post(
    "/job-types/{name}/resume",
    response=RESUMED,
    operation_id="resumeJobType",
    summary=gettext_lazy("Resume a job type"),
)
def resume_type(request: HttpRequest, name: Path[TypeName]) -> Status[None]:
    return _resume(request, "type", name)


@router.put(
    "/job-types/{name}",
    response={200: LimitsOut, **COMMON, **MISSING, **BODY},
    operation_id="setJobTypeLimits",
    summary=gettext_lazy("Set how many jobs of a type run at once and start in a span of time"),
    description=gettext_lazy(
        "They hold at once in the whole cluster, and until they are set back to the declared ones."
    ),
)
def set_limits(request: HttpRequest, name: Path[TypeName], body: LimitsIn) -> dict[str, Any]:
    return _limits(
        name,
        flow.set_limits(name, max_running=body.max_running, rate_limit=body.rate_limit, actor=_actor(request)),
    )


@router.delete(
    "/job-types/{name}/limits",
    response={200: LimitsOut, **COMMON, **MISSING},
    operation_id="resetJobTypeLimits",
    summary=gettext_lazy("Let the declared limits of a type hold again"),
)
def reset_limits(request: HttpRequest, name: Path[TypeName]) -> dict[str, Any]:
    return _limits(name, flow.reset_limits(name, actor=_actor(request)))


def _limits(name: str, limits: flow.Limits) -> dict[str, Any]:
    return {
        "name": name,
        "max_running": limits.max_running,
        "rate_limit": None if limits.rate is None else str(limits.rate),
    }
