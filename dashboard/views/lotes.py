"""Acts over many from the screens: what one would do, begin it, how far it is, stop it. Scripts get JSON."""

import re
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from dashboard import bulkwords, errorpage, filters, letterquery, listpage, shared
from dashboard.acts import BY_SCRIPT, act, done
from dashboard.reading import instant_of
from dashboard.views.guard import came_from, signed_in
from jobs import access, bulk, queries
from jobs.bulk import Act, AnyFilter, Run, Target
from jobs.errors import Invalid

# A short act has ended by then, and its toast need not count.
AT_ONCE = 0.4
LONGEST_IDS = 40 * bulk.IDS_MOST


def shown(run: Run) -> dict[str, Any]:
    """A run for the scripts: its numbers, its words, where to ask and to stop."""
    title, detail = bulkwords.told(run)
    return {
        "id": str(run.id),
        "act": str(run.act),
        "target": str(run.target),
        "total": run.total,
        "estimated": run.estimated,
        "done": run.done,
        "applied": run.applied,
        "requested": run.requested,
        "skipped": run.skipped,
        "state": run.state,
        "waiting": run.waiting,
        "ended": run.ended,
        "percent": bulkwords.percent(run),
        "title": title,
        "detail": detail,
        "words": "; ".join(part for part in (title, detail) if part),
        "url": reverse("lote", args=[run.id]),
        "stop": reverse("lote-parar", args=[run.id]),
    }


def _invalid(name: str, told: str) -> Invalid:
    return Invalid(told, errors={name: [told]})


def _uuid(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _invalid(name, _("Expected an id, not %(text)s.") % {"text": text[:60]}) from None


def _ids(data: QueryDict) -> list[UUID] | None:
    """The ids: repeated fields, or one with commas between them. None when the field is not there. Raises Invalid."""
    if "ids" not in data:
        return None
    text = ",".join(data.getlist("ids"))
    if len(text) > LONGEST_IDS:
        told = _("At most %(most)d can be named at once; use a filter for more.") % {"most": bulk.IDS_MOST}
        raise _invalid("ids", told)
    return [_uuid("ids", part) for part in re.split(r"[\s,]+", text) if part]


def _instant(data: QueryDict) -> datetime | None:
    text = data.get("before", "")
    if not text:
        return None
    try:
        return instant_of(text)
    except ValueError:
        raise _invalid("before", _("Expected the instant that the preview gave.")) from None


def _asked(data: QueryDict) -> dict[str, Any]:
    """What the browser asks for, as `jobs.bulk` takes it. Raises Invalid."""
    target = data.get("target") or str(Target.JOBS)
    before = _instant(data)
    ids = _ids(data)
    wanted: AnyFilter | None = None
    if "filter" in data:
        query = data["filter"].removeprefix("?")
        if target == Target.LETTERS:
            wanted = letterquery.letter_filter(query)
        else:
            before = before or queries.now()
            wanted = filters.job_filter(query, before)
    return {"act": data.get("act", ""), "target": target, "ids": ids, "filter": wanted, "before": before}


def _filter_words(data: QueryDict, target: str) -> list[str]:
    """The filter as the dialog lists it."""
    query = data.get("filter", "").removeprefix("?")
    if not query:
        return []
    if target == Target.LETTERS:
        asked = letterquery.parse(query)
        labels = {"tipo": _("Type"), "fila": _("Queue"), "busca": _("Search")}
        found = [f"{label}: {asked.values[name]}" for name, label in labels.items() if name in asked.values]
        fingerprint = asked.filter.fingerprint
        cause = None if fingerprint is None else errorpage.one(asked, fingerprint)
        return found if cause is None else [f"{cause.type}, {cause.error_type or cause.failure_kind}", *found]
    return [chip.text for chip in listpage.chips(filters.parse(query, timezone.now()))]


def _question(data: QueryDict) -> tuple[bulk.Preview, dict[str, Any]]:
    """What the act would meet, and the words that ask for it. Raises Invalid."""
    asked = _asked(data)
    found = bulk.preview(**asked)
    what, target = Act(asked["act"]), Target(asked["target"])
    wide = asked["ids"] is None and not (target is Target.LETTERS and asked["filter"].fingerprint is not None)
    return found, bulkwords.question(found, what, target, wide=wide, filters=_filter_words(data, target))


@require_safe
@signed_in
def preview(request: HttpRequest) -> JsonResponse:
    """How many an act would meet now, and the question to be asked before it."""
    found, words = _question(request.GET)
    return JsonResponse({
        "id": str(found.id),
        "before": found.before.isoformat(),
        "count": found.count,
        "estimated": found.estimated,
        "by_state": {str(state): number for state, number in found.by_state.items()},
        "samples": [
            {"id": str(one.id), "type": one.type, "state": one.state, "queue": one.queue} for one in found.samples
        ],
        **words,
    })  # fmt: skip


def _asked_without_script(request: HttpRequest) -> HttpResponse | None:
    """The question as a page of its own; None when it has been answered there."""
    found, words = _question(request.POST)
    if request.POST.get("confirmed") == str(found.count) and request.POST.get("typed", "") == words["typed"]:
        return None
    names = ("act", "target", "filter", "ids")
    fields = [(name, value) for name in names for value in request.POST.getlist(name)]
    back = came_from(request)
    fields += [
        ("id", str(found.id)),
        ("before", found.before.isoformat()),
        ("confirmed", str(found.count)),
        ("next", back),
    ]
    context = {"screen": "", "question": words, "fields": fields, "back": back}
    return render(request, "dashboard/lotes/confirm.html", context)


@act
def start(request: HttpRequest) -> HttpResponse:
    """Begin an act over many; a short one has ended when this answers."""
    by_script = request.headers.get(BY_SCRIPT)
    if not by_script and (page := _asked_without_script(request)) is not None:
        return page
    asked = _asked(request.POST)
    name = request.POST.get("id", "")
    run = bulk.start(
        **asked,
        actor=access.actor(request),
        reason=request.POST.get("reason") or None,
        id=_uuid("id", name) if name else None,
    )
    run = bulk.wait(run.id, AT_ONCE)
    shared.forget()
    if not by_script:
        return done(request, shown(run)["words"])
    return JsonResponse({"run": shown(run)})


@require_safe
@signed_in
def status(request: HttpRequest, id: UUID) -> JsonResponse:
    """How far a run is. Asking is what takes over a run whose process died."""
    run = bulk.get(id)
    if run.ended:
        shared.forget()
    return JsonResponse({"run": shown(run)})


@act
def stop(request: HttpRequest, id: UUID) -> JsonResponse:
    """Stop a run after the batch that is under way."""
    return JsonResponse({"run": shown(bulk.stop(id))})
