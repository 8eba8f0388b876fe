"""The workers: who is alive, leaving or gone, what each one holds; and one worker by itself."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.fleet import TABS, everyone, fleet
from dashboard.fragments import fragment
from dashboard.views.guard import signed_in
from jobs.conf import conf

LONGEST = 100


def _context(request: HttpRequest, order: str) -> dict[str, Any]:
    tab = request.GET.get("estado", "")
    tab = tab if tab in TABS else ""
    search = request.GET.get("busca", "").strip()[:LONGEST]
    worker = conf().worker
    return {
        "screen": "workers",
        "fleet": fleet(tab, search, order),
        "tab": tab,
        "search": search,
        "beat": worker.heartbeat_interval,
        "silent": worker.silent_after,
        "lease": worker.lease_duration,
    }


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The list, those that need a person first."""
    return render(request, "dashboard/workers/page.html", _context(request, ""))


@require_safe
@signed_in
def part(request: HttpRequest) -> HttpResponse:
    """The list again, in the order in which the page has it (`ordem`)."""
    return fragment(request, "dashboard/workers/part.html", _context(request, request.GET.get("ordem", "") or "-"))


def _one(id_: UUID) -> dict[str, Any]:
    found = next((row for row in everyone() if row.id == id_), None)
    return {"screen": "workers", "row": found, "id": id_}


@require_safe
@signed_in
def one(request: HttpRequest, id: UUID) -> HttpResponse:
    """One worker with what it runs; 404 in words when its row is gone."""
    context = _one(id)
    if context["row"] is None:
        return render(request, "dashboard/workers/missing.html", context, status=404)
    return render(request, "dashboard/workers/one.html", context)


@require_safe
@signed_in
def one_part(request: HttpRequest, id: UUID) -> HttpResponse:
    """What changes on the page of one worker."""
    return fragment(request, "dashboard/workers/one_now.html", _one(id))
