"""Recurring jobs: the list with what each does next, and what people do to one."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from dashboard import schedulepage
from dashboard.acts import act, done
from dashboard.fragments import fragment
from dashboard.views.guard import signed_in
from jobs import access, queries, schedules
from jobs.queries.schedulelist import schedule_rows


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The list, the next to fire first."""
    asked = schedulepage.parse_asked(request.GET)
    context = schedulepage.context(asked, schedulepage.opened(request.GET))
    return render(request, "dashboard/recorrentes/page.html", context)


@require_safe
@signed_in
def part(request: HttpRequest) -> HttpResponse:
    """The rows of the page again, in its order (`ids`); what came since it was loaded (`desde`) is only counted."""
    asked = schedulepage.parse_asked(request.GET)
    shown = schedulepage.ids(request.GET.get("ids", ""))
    opened = schedulepage.opened(request.GET)
    context = schedulepage.part(asked, shown, opened, schedulepage.since(request.GET))
    return fragment(request, "dashboard/recorrentes/part.html", context)


@require_safe
@signed_in
def detail(request: HttpRequest, id: UUID) -> HttpResponse:
    """What an open row shows: the next instants, the last runs, the policies."""
    row = next(iter(schedule_rows([id])), None)
    if row is None:
        raise Http404
    context = {"row": row, "detail": schedulepage.detail(row, queries.now())}
    return render(request, "dashboard/recorrentes/detail.html", context)


def _name(id_: UUID) -> str:
    row = next(iter(schedule_rows([id_])), None)
    return row.name if row is not None else ""


@act
def trigger(request: HttpRequest, id: UUID) -> HttpResponse:
    """Fire it now, besides its schedule. Raises NotFound, or Conflict where its last run forbids it."""
    job = schedules.trigger(id, actor=access.actor(request))
    said = _("%(name)s was run.") % {"name": _name(id)}
    return done(request, said, link=(reverse("tarefa", args=[job]), _("Open the job")))


@act
def enable(request: HttpRequest, id: UUID) -> HttpResponse:
    """It fires again, from its next instant on. Raises NotFound."""
    schedules.enable(id, actor=access.actor(request))
    return done(request, _("%(name)s enabled.") % {"name": _name(id)})


@act
def disable(request: HttpRequest, id: UUID) -> HttpResponse:
    """It does not fire until somebody enables it; what it has made goes on. Raises NotFound."""
    schedules.disable(id, actor=access.actor(request))
    return done(request, _("%(name)s disabled.") % {"name": _name(id)})


@act
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    """Delete it; its jobs stay. Raises NotFound, or Conflict for a declared one."""
    name = _name(id)
    schedules.delete(id, actor=access.actor(request))
    go = reverse("recorrentes") if request.POST.get("de") == "editor" else None
    return done(request, _("%(name)s deleted.") % {"name": name}, go=go)
