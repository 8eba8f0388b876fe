"""The queues: where work piles up and since when, what is paused and by whom, who holds a key and who waits for it."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from dashboard import queuepage
from dashboard.acts import act, done
from dashboard.fragments import fragment
from dashboard.views.guard import signed_in
from jobs import access, flow
from jobs.bounds import PRIORITIES
from jobs.errors import refused_fields

LONGEST = 200
MOST_SLOTS = 1000


def _after(request: HttpRequest) -> str:
    return request.GET.get("depois", "").replace("\0", "")[:LONGEST]


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The whole page: queues, keys, pauses, rates."""
    context = {
        "screen": "filas",
        "queues": queuepage.queues(),
        "scopes": queuepage.SCOPES.items(),
        "spans": queuepage.SPAN_WORDS,
        **queuepage.flow(_after(request)),
    }
    return render(request, "dashboard/filas/page.html", context)


@require_safe
@signed_in
def part(request: HttpRequest) -> HttpResponse:
    """The list of queues again, in the order in which the page has it (`ordem`)."""
    found = queuepage.queues(request.GET.get("ordem", "") or "-")
    return fragment(request, "dashboard/filas/part.html", {"queues": found})


@require_safe
@signed_in
def flow_part(request: HttpRequest) -> HttpResponse:
    """Keys, pauses and rates again."""
    return fragment(request, "dashboard/filas/flow.html", queuepage.flow(_after(request)))


def _one(queue: str) -> dict[str, Any]:
    return {"screen": "filas", "row": queuepage.one(queue), "name": queue}


@require_safe
@signed_in
def one(request: HttpRequest, queue: str) -> HttpResponse:
    """One queue: its figures and its settings; 404 in words when nothing is known of it."""
    context = _one(queue) | {"spans": queuepage.SPAN_WORDS, "lowest": PRIORITIES[0], "highest": PRIORITIES[1]}
    if context["row"] is None:
        return render(request, "dashboard/filas/missing.html", context, status=404)
    return render(request, "dashboard/filas/one.html", context | {"most_slots": MOST_SLOTS})


@require_safe
@signed_in
def one_part(request: HttpRequest, queue: str) -> HttpResponse:
    """What changes on the page of one queue."""
    return fragment(request, "dashboard/filas/one_now.html", _one(queue))


def _until(request: HttpRequest) -> datetime | None:
    """The end of the pause that the form asks for. Raises Invalid."""
    span = request.POST.get("por", "")
    if span and span not in queuepage.SPANS:
        raise refused_fields({"por": [_("Expected one of: %(known)s.") % {"known": ", ".join(queuepage.SPANS)}]})
    return timezone.now() + timedelta(seconds=queuepage.SPANS[span]) if span else None


@act
def pause(request: HttpRequest) -> HttpResponse:
    """Pause a queue, type, tag or key: `scope`, `value`, `reason`, and `por` how long. Raises Invalid."""
    until = _until(request)
    made = flow.pause(
        request.POST.get("scope", ""),
        request.POST.get("value", "").strip(),
        reason=request.POST.get("reason", "").strip(),
        until=until,
        actor=access.actor(request),
    )
    return done(request, _("Paused: %(name)s.") % {"name": made.value})


@act
def resume(request: HttpRequest) -> HttpResponse:
    """Resume what is paused: `scope`, `value`. Raises NotFound when it is not paused any more."""
    over = flow.resume(request.POST.get("scope", ""), request.POST.get("value", ""), actor=access.actor(request))
    return done(request, _("Resumed: %(name)s.") % {"name": over.value})


def _number(request: HttpRequest, name: str, least: int, most: int) -> int | None:
    """A whole number of the form, None for an empty field. Raises Invalid."""
    text = request.POST.get(name, "").strip()
    if not text:
        return None
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 9 and least <= int(text) <= most:
        return int(text)
    told = {"least": least, "most": most}
    raise refused_fields({name: [_("Expected a whole number from %(least)d to %(most)d.") % told]})


@act
def settings(request: HttpRequest, queue: str) -> HttpResponse:
    """Set how many slots a worker gives the queue, and the priority of jobs that ask for none. Raises Invalid."""
    slots = _number(request, "slots", 0, MOST_SLOTS)
    priority = _number(request, "default_priority", *PRIORITIES)
    flow.set_queue(queue, slots=slots, default_priority=priority, actor=access.actor(request))
    return done(request, _("Saved."))
