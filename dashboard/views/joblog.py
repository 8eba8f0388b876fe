"""The log of a job: lines that were written since, older ones, and all of them as a file."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from dashboard.joblog import as_text, execution_asked, lines_of
from dashboard.views.guard import signed_in
from jobs import queries
from jobs.errors import Invalid
from jobs.queries.joblog import LEVELS, LogKey

STEP = 500


@require_safe
@signed_in
def lines(request: HttpRequest, id: UUID) -> HttpResponse:
    """Lines after (`depois`) or before (`antes`) the line of that key, or the last ones; 204 when there are none.

    The header X-Turno-More says that there are further ones that way. Raises Invalid for a key that is none.
    """
    after, before = (LogKey.parse(request.GET[name]) if name in request.GET else None for name in ("depois", "antes"))
    if (after is None and "depois" in request.GET) or (before is None and "antes" in request.GET):
        raise Invalid(_("This is no place in a log."))
    levels = LEVELS.get(request.GET.get("nivel", ""), LEVELS[""])
    found = queries.log_lines(
        id, execution=execution_asked(request), levels=levels, after=after, before=before, limit=STEP
    )
    if not found.items and (after is not None or before is not None):
        response = HttpResponse(status=204)
    else:
        shown = lines_of(found.items, after.execution if after is not None and after.number else None)
        response = render(request, "dashboard/tarefa/lines.html", {"log": shown})
    response["X-Turno-More"] = "1" if found.more else "0"
    return response


@require_safe
@signed_in
def download(request: HttpRequest, id: UUID) -> HttpResponse:
    """The log as plain text, of one execution (`tentativa`) or of all."""
    execution = execution_asked(request)
    response = HttpResponse(as_text(id, execution), content_type="text/plain; charset=utf-8")
    name = f"{id}-{execution}" if execution is not None else str(id)
    response["Content-Disposition"] = f'attachment; filename="turno-{name}.log"'
    return response
