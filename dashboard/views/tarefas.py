"""The list of jobs: the page, and the parts of it that refresh by themselves."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import jobrows, listpage
from dashboard.filters import KEYS, PAYLOAD, Asked, first_after, parse
from dashboard.fragments import fragment
from dashboard.views.guard import signed_in
from jobs import queries
from jobs.queries.cursor import NEWEST, Cursor, first_id_of

IDS = 200
PROBE = 0.2


def asked_by(request: HttpRequest, as_of: datetime | None = None) -> Asked:
    """The filter, with the place where a search text is looked for: among keys, or in payloads when no key is it."""
    as_of = as_of or queries.now()
    asked = parse(request.GET, as_of)
    text = asked.filter.keys
    if text is None or "em" in asked.values:
        return asked
    by_key = queries.walk(queries.JobFilter(keys=text), need=1, seconds=PROBE).ids
    data = request.GET.copy()
    data["em"] = KEYS if by_key else PAYLOAD
    return parse(data, as_of)


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The list. `ir` (an instant in the viewer's zone) leads to the page that begins there."""
    as_of = queries.now()
    asked = asked_by(request, as_of)
    if request.GET.get("ir"):
        return _jump(request, asked)
    found = queries.job_list(asked.filter, order=asked.order, at=asked.cursor)
    if (
        asked.cursor is not None
        and asked.cursor.order != asked.order
        and (found.newer if asked.order == NEWEST else found.older) is None
    ):
        # Back at the beginning: the first page, whole.
        return HttpResponseRedirect(f"{reverse('tarefas')}?{asked.query()}")
    context = listpage.context(asked, found, as_of)
    return render(request, "dashboard/tarefas/page.html", {"screen": "tarefas", **context})


def _jump(request: HttpRequest, asked: Asked) -> HttpResponse:
    data = request.GET.copy()
    data["de"] = data["ir"]
    instant = parse(data, timezone.now()).filter.created_from
    query = asked.query()
    if instant is not None:
        start = first_id_of(int(first_after(instant, asked.order).timestamp() * 1000))
        query = f"{query}&cursor={Cursor(asked.order, start)}".removeprefix("&")
    return HttpResponseRedirect(f"{reverse('tarefas')}?{query}")


@require_safe
@signed_in
def tabs(request: HttpRequest) -> HttpResponse:
    """The tabs with their counts."""
    asked = asked_by(request)
    return fragment(request, "dashboard/tarefas/tabs.html", {"tabs": listpage.tabs(asked), "asked": asked})


@require_safe
@signed_in
def new(request: HttpRequest) -> HttpResponse:
    """How many jobs match that the page does not show: an offer, in words."""
    asked = asked_by(request)
    floor = _ids(request.GET.get("desde", ""))
    seen = _ids(request.GET.get("vistas", ""))
    number = queries.newer(asked.filter, floor[0], seen) if floor else 0  # None: there was no time to count
    context: dict[str, Any] = {"asked": asked, "new": number, "most": 1000, "here": request.get_full_path()}
    return fragment(request, "dashboard/tarefas/new.html", context)


@require_safe
@signed_in
def lines(request: HttpRequest) -> HttpResponse:
    """The rows with these ids, as they are now; a deleted one says so."""
    ids = _ids(request.GET.get("ids", ""))
    context = {"rows": jobrows.rows(queries.rows(ids), ids), "ids": request.GET.get("ids", "")}
    return fragment(request, "dashboard/tarefas/rows.html", context)


@require_safe
@signed_in
def number(request: HttpRequest) -> HttpResponse:
    """How many jobs a filter would show, in words: for the button of the dialog."""
    asked = asked_by(request)
    counted = queries.count(replace(asked.filter, state=None))
    return HttpResponse(listpage.words(counted), content_type="text/plain; charset=utf-8")


def _ids(text: str) -> list[UUID]:
    """Ids separated by commas; what is none is left out."""
    found = []
    for part in text.split(",")[:IDS]:
        try:
            found.append(UUID(part))
        except ValueError:
            continue
    return found
