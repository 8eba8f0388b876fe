"""What there is: figures, workers, types; who answers here; is it well."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja import Router

from jobs import access, health, queries
from jobs.api import shapes
from jobs.api.openapi import COMMON, PROBLEM
from jobs.api.prometheus import exposition
from jobs.api.schemas_figures import QueuesOut, StatsOut
from jobs.api.schemas_flow import TypesOut
from jobs.api.schemas_out import InfoOut, LiveOut, ReadyOut, WorkersOut
from jobs.errors import Unavailable
from jobs.registry import catalogue
from jobs.version import VERSION

router = Router(tags=["system"])
probes = Router(tags=["health"], auth=None)
scrapes = Router()
OPEN_ANSWERS = {400: PROBLEM, 500: PROBLEM}


@router.get(
    "/stats",
    response={200: StatsOut, **COMMON},
    operation_id="getStats",
    summary=gettext_lazy("Figures of now and of the last 24 hours"),
)
def get_stats(request: HttpRequest) -> dict[str, Any]:
    found = queries.stats()
    return {
        "active": {str(state): count for state, count in found.active.items()},
        "parked": found.parked,
        "dead_letters": found.dead_letters,
        "causes": found.causes,
        "estimated": found.estimated,
        "oldest_enqueued_at": found.oldest_enqueued_at,
        "next_run_at": found.next_run_at,
        "last_hour": found.last_hour,
        "last_24_hours": found.last_24_hours,
        "p95_duration": found.p95_duration,
        "outbox": queries.outbox(),
        "as_of": found.as_of,
    }


@router.get(
    "/workers",
    response={200: WorkersOut, **COMMON},
    operation_id="listWorkers",
    summary=gettext_lazy("The workers and what they run"),
)
def list_workers(request: HttpRequest) -> dict[str, Any]:
    return {"items": queries.workers()}


@router.get(
    "/queues",
    response={200: QueuesOut, **COMMON},
    operation_id="listQueues",
    summary=gettext_lazy("The queues, how deep they are and who serves them"),
)
def list_queues(request: HttpRequest) -> dict[str, Any]:
    return {"items": queries.queues(queries.board({}))}


@router.get(
    "/job-types",
    response={200: TypesOut, **COMMON},
    operation_id="listJobTypes",
    summary=gettext_lazy("The job types with their payload schemas"),
)
def list_job_types(request: HttpRequest) -> dict[str, Any]:
    return {"items": [shapes.job_type(row) for row in queries.job_types()]}


@router.get(
    "/info",
    auth=None,
    response={200: InfoOut, **OPEN_ANSWERS},
    operation_id="getInfo",
    summary=gettext_lazy("Name, version, and whether a key is needed"),
)
def get_info(request: HttpRequest) -> dict[str, Any]:
    how = access.mode(request)
    return {
        "name": "Turno",
        "version": VERSION,
        "access": how,
        "key_required": how is not access.Mode.OPEN,
    }


@probes.get(
    "/live",
    response={200: LiveOut, **OPEN_ANSWERS},
    operation_id="isLive",
    summary=gettext_lazy("The process is alive"),
)
def is_live(request: HttpRequest) -> dict[str, Any]:
    return {"status": "live"}


@probes.get(
    "/ready",
    response={200: ReadyOut, 503: PROBLEM, **OPEN_ANSWERS},
    operation_id="isReady",
    summary=gettext_lazy("Everything it depends on answers"),
    description=gettext_lazy(
        "ready: all is well. degraded: requests are answered and jobs accepted, but something beside PostgreSQL is"
        " down. 503: PostgreSQL is down."
    ),
)
def is_ready(request: HttpRequest) -> dict[str, Any]:
    reports = health.check_all()
    shown = [
        {
            "name": report.name,
            "ok": report.ok,
            "needed": report.needed,
            "detail": report.said,
            "since": report.since,
            "latency": report.latency,
        }
        for report in reports
    ]
    down = [report for report in reports if not report.ok]
    if any(report.needed for report in down):
        said = "; ".join(
            _("%(name)s %(detail)s, since %(since)s")
            % {"name": report.name, "detail": report.said, "since": report.since.isoformat(timespec="seconds")}
            for report in down
        )
        raise Unavailable(said, probes=shown, retry_after=5)
    broken = [problem.module for problem in catalogue.problems()]  # names only: a stranger may ask
    return {"status": "degraded" if down else "ready", "probes": shown, "broken_modules": broken}


@scrapes.get("", include_in_schema=False)  # its answer is no JSON, and its reader is no client of the API
def get_metrics(request: HttpRequest) -> HttpResponse:
    body, content_type = exposition(request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=content_type)
