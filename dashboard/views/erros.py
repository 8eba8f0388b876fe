"""Dead letters: the causes, the letters of one, and what is done to a single letter."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_safe

from dashboard import errorpage, letterquery
from dashboard.acts import act, done
from dashboard.fragments import fragment
from dashboard.views.guard import signed_in
from jobs import access, bulk, operations
from jobs.queries.letters import LetterCursor

MOST_OPEN = 20


def _listed(request: HttpRequest, name: str, most: int) -> list[str]:
    """Keys that the page names, each once."""
    given = [part for text in request.GET.getlist(name) for part in text.split(",") if part]
    return list(dict.fromkeys(given))[:most]


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The causes."""
    asked = letterquery.parse(request.GET)
    opened = _listed(request, "aberta", MOST_OPEN) + ([asked.values["causa"]] if "causa" in asked.values else [])
    context = errorpage.context(asked, opened=opened)
    context["runs"] = bulk.active()  # looking is what takes over those whose process died
    return render(request, "dashboard/erros/page.html", context)


@require_safe
@signed_in
def groups(request: HttpRequest) -> HttpResponse:
    """The causes again, in the order in which the page has them while one is open; the counts beside them."""
    asked = letterquery.parse(request.GET)
    order = _listed(request, "ordem_atual", errorpage.PAGE)
    context = errorpage.context(asked, order=order, whole=False)
    return fragment(request, "dashboard/erros/live.html", context)


@require_safe
@signed_in
def body(request: HttpRequest, key: str) -> HttpResponse:
    """What an open cause shows."""
    asked = letterquery.parse(request.GET)
    found = errorpage.one(asked, letterquery.fingerprint(key))
    if found is None:
        raise Http404
    context = {"asked": asked, "pending": asked.tab == "pending", **errorpage.body(asked, found)}
    return render(request, "dashboard/erros/body.html", context)


def _after(request: HttpRequest) -> LetterCursor | None:
    """A page that does not exist is the first one."""
    try:
        return LetterCursor.parse(request.GET.get("cursor", ""))
    except ValueError:
        return None


@require_safe
@signed_in
def cause(request: HttpRequest, key: str) -> HttpResponse:
    """All letters of one cause, by pages."""
    asked = letterquery.parse(request.GET)
    found = errorpage.one(asked, letterquery.fingerprint(key))
    if found is None:
        return render(request, "dashboard/erros/gone.html", {"screen": "erros", "asked": asked}, status=404)
    return render(request, "dashboard/erros/cause.html", errorpage.cause_context(asked, found, _after(request)))


@require_safe
@signed_in
def rows(request: HttpRequest, key: str) -> HttpResponse:
    """The letters of that page again, after an act; none left is said in their place."""
    asked = letterquery.parse(request.GET)
    found = errorpage.one(asked, letterquery.fingerprint(key))
    gone = {"asked": asked, "key": key}
    context = gone if found is None else errorpage.cause_context(asked, found, _after(request))
    return fragment(request, "dashboard/erros/letters.html", context)


@act
def requeue(request: HttpRequest, id: UUID) -> HttpResponse:
    """Requeue a letter's job."""
    operations.requeue_letter(id, actor=access.actor(request))
    return done(request, _("Job requeued"))


@act
def discard(request: HttpRequest, id: UUID) -> HttpResponse:
    """Discard a letter; its job stays failed."""
    operations.discard_letter(id, actor=access.actor(request))
    return done(
        request,
        _("Job discarded"),
        link=(reverse("erros") + "?situacao=descartadas", pgettext("dead letters", "Discarded")),
    )
