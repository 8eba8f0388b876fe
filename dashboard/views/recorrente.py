"""One recurring job's editor, and what its form would do while it is being filled in."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import scheduleform, schedulepreview
from dashboard.acts import BY_SCRIPT, act, done
from dashboard.fragments import fragment
from dashboard.scheduleform import Form
from dashboard.views.guard import signed_in
from jobs import access
from jobs.errors import Forbidden, NotFound, Refused
from jobs.queries.schedules import ScheduleRow, schedule

READ = {"GET", "HEAD"}
# What stands in the hidden field `touched`: of the others nothing is said before the form is sent.
ALL = "*"


def _context(request: HttpRequest, form: Form, row: ScheduleRow | None) -> dict[str, Any]:
    id_ = row.id if row is not None else None
    type_ = form.values["type"].strip()
    locked = row is not None and row.declared
    return {
        "screen": "recorrentes",
        "form": form,
        "row": row,
        "locked": locked,
        "closed": locked or not access.may_operate(request),
        "preview": schedulepreview.preview(form.values, id_),
        "members": scheduleform.members(type_),
        "skeleton": scheduleform.skeleton(type_),
        "action": reverse("recorrente", args=[id_]) if id_ else reverse("recorrente-nova"),
        **scheduleform.choices(form),
    }


def _save(request: HttpRequest, row: ScheduleRow | None) -> HttpResponse:
    if not access.may_operate(request):
        raise Forbidden(access.looks_only())
    form = scheduleform.of_post(request.POST)
    try:
        name = scheduleform.save(form, row, access.actor(request))
    except Refused as refused:
        if request.headers.get(BY_SCRIPT):
            raise
        scheduleform.refuse(form, refused)
        context = _context(request, form, row)
        return render(request, "dashboard/recorrentes/editor.html", context, status=refused.status)
    return done(request, _("%(name)s saved.") % {"name": name}, go=reverse("recorrentes"))


@require_http_methods(["GET", "HEAD", "POST"])
@csrf_protect
@signed_in
def new(request: HttpRequest) -> HttpResponse:
    """An empty form; posted, a new recurring job. What is wrong is said beside its field, and nothing typed is lost."""
    if request.method not in READ:
        return _save(request, None)
    context = _context(request, scheduleform.blank(request.GET), None)
    return render(request, "dashboard/recorrentes/editor.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@csrf_protect
@signed_in
def edit(request: HttpRequest, id: UUID) -> HttpResponse:
    """The form of one; posted, saved, unless somebody else has saved it since the form was opened (409)."""
    row = schedule(id)
    if row is None:
        if request.method not in READ:
            if not access.may_operate(request):
                raise Forbidden(access.looks_only())
            raise NotFound(_("There is no such recurring job, or not any more."))
        return render(request, "dashboard/recorrentes/missing.html", {"screen": "recorrentes", "id": id}, status=404)
    if request.method not in READ:
        return _save(request, row)
    form = scheduleform.of_row(row)
    if row.error and not row.declared:  # it is opened to be corrected: what is wrong stands beside its field
        form.errors = scheduleform.problems(form)
    return render(request, "dashboard/recorrentes/editor.html", _context(request, form, row))


@require_safe
@signed_in
def head(request: HttpRequest, id: UUID) -> HttpResponse:
    """The head of its page: whether it is enabled, what can be done."""
    return fragment(request, "dashboard/recorrentes/head.html", {"row": schedule(id), "id": id})


@act
def preview(request: HttpRequest) -> HttpResponse:
    """What the form would do, and what is wrong with the fields that were touched: parts of the page, nothing else."""
    form = scheduleform.of_post(request.POST)
    touched = set(request.POST.get("touched", "").split(","))
    found = scheduleform.problems(form)
    form.errors = {name: texts for name, texts in found.items() if ALL in touched or name.partition(".")[0] in touched}
    type_ = form.values["type"].strip()
    context = {
        "form": form,
        "preview": schedulepreview.preview(form.values, _id(request.POST.get("id", ""))),
        "members": scheduleform.members(type_),
        "skeleton": scheduleform.skeleton(type_),
    }
    return render(request, "dashboard/recorrentes/told.html", context)


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
