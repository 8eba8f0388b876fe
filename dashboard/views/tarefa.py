"""One job: the page, its live parts, what people do to it."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from dashboard import jobpage
from dashboard.acts import act, done
from dashboard.fragments import fragment
from dashboard.joblog import execution_asked, shown_log
from dashboard.views.guard import signed_in
from jobs import access, operations, queries
from jobs.errors import Conflict


class NotCancelled(Conflict):
    """The job ended before the cancel came."""

    title = gettext_lazy("Not cancelled.")


def _context(request: HttpRequest, id_: UUID, *, whole: bool) -> dict[str, Any] | None:
    found = queries.glance(id_, whole=whole)
    if found is None:
        return None
    made = jobpage.context(
        found,
        chosen=execution_asked(request),
        every_step="linha" in request.GET,
        may=access.may_operate(request),
    )
    return made | {"query": request.GET.urlencode()}


@require_safe
@signed_in
def page(request: HttpRequest, id: UUID) -> HttpResponse:
    """The whole page; 404 in words when there is no such job."""
    context = _context(request, id, whole=True)
    if context is None:
        return render(request, "dashboard/tarefa/missing.html", {"screen": "tarefas", "id": id}, status=404)
    job = context["job"]
    shown = jobpage.payload(job)
    key = access.mode(request) is access.Mode.KEY
    context |= {
        "screen": "tarefas",
        "payload": shown,
        "curl": jobpage.curl(job, shown, request.build_absolute_uri("/").rstrip("/"), key=key),
        "aside": job["state"] in {"Failed", "Cancelled"} and context["result"] is None,
        **shown_log(id, job["executions"], context["chosen"], request.GET.get("nivel", "")),
    }
    return render(request, "dashboard/tarefa/page.html", context)


@require_safe
@signed_in
def now_part(request: HttpRequest, id: UUID) -> HttpResponse:
    """What changes while the job waits or runs: progress, stage, what stands in its way."""
    context = _context(request, id, whole=False)
    return fragment(request, "dashboard/tarefa/now.html", context or {"gone": True, "job": {"id": id}})


@require_safe
@signed_in
def state_part(request: HttpRequest, id: UUID) -> HttpResponse:
    """What changes with the job's state: head, acts, facts, time line, attempts, error, result."""
    context = _context(request, id, whole=False)
    return fragment(request, "dashboard/tarefa/state.html", context or {"gone": True, "job": {"id": id}})


def _ended_at(id_: UUID) -> str:
    found = queries.glance(id_, whole=False)
    instant = found.job["finished_at"] if found is not None else None
    return f"{timezone.localtime(instant):%H:%M:%S}" if instant is not None else ""


@act
def cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    """Cancel: at once while it waits, by request while it runs. Raises NotFound, or Conflict with when it ended."""
    reason = request.POST.get("reason", "").strip() or None
    try:
        verdict = operations.cancel(id, actor=access.actor(request), reason=reason)
    except Conflict as refused:
        at = _ended_at(id)
        if not at:
            raise
        detail = _("The job had already finished at %(time)s.") % {"time": at}
        raise NotCancelled(detail, **refused.extra) from None
    said = _("Cancel requested.") if verdict.requested else _("1 job cancelled.")
    detail = _("Its worker stops it at the next safe point.") if verdict.requested else ""
    return done(request, said, detail=detail)


@act
def requeue(request: HttpRequest, id: UUID) -> HttpResponse:
    """Run a failed or cancelled job again. Raises NotFound or Conflict."""
    operations.requeue(id, actor=access.actor(request))
    return done(request, _("1 job requeued."), link=(reverse("tarefa", args=[id]), _("Open")))


@act
def run_now(request: HttpRequest, id: UUID) -> HttpResponse:
    """Start a scheduled job without waiting for its instant. Raises NotFound or Conflict."""
    operations.run_now(id, actor=access.actor(request))
    return done(request, _("1 job enqueued now."), link=(reverse("tarefa", args=[id]), _("Open")))


@act
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    """Delete a finished job with its history, and lead back to the list. Raises NotFound or Conflict."""
    operations.delete(id)
    back = request.POST.get("de", "")
    go = None if back == "lista" else reverse("tarefas")
    return done(request, _("1 job deleted."), go=go)
