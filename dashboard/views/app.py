"""What every screen has: the counts in the navigation, the palette's finds, the choice of language and zone."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST, require_safe

from dashboard.context import navigation
from dashboard.fragments import fragment
from dashboard.views.guard import safe_next, signed_in
from dashboard.zone import COOKIE, zone_of
from jobs import queries
from jobs.errors import Invalid

FOUND = 6
LONGEST = 200
YEAR = 365 * 86400


@require_safe
@signed_in
def counts(request: HttpRequest) -> HttpResponse:
    """The counts beside the screens' names."""
    screen = request.GET.get("tela", "")[:LONGEST]
    return fragment(request, "app/nav.html", {"screen": screen, "nav": navigation()})


@require_safe
@signed_in
def found(request: HttpRequest) -> HttpResponse:
    """The palette's finds for a text: jobs by id, type or key."""
    text = request.GET.get("q", "").strip()[:LONGEST].replace("\0", "")
    jobs = queries.page(queries.JobFilter(search=text), size=FOUND).items if text else []
    return render(request, "app/found.html", {"jobs": jobs, "text": text})


def _back(request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect(safe_next(request, request.POST.get("next")))


@csrf_protect
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Keep the language that was chosen, and go back to the page. Raises Invalid for one that is not spoken here."""
    chosen = request.POST.get("language", "")
    if not translation.check_for_language(chosen) or chosen not in dict(settings.LANGUAGES):
        raise Invalid(_("This language is not spoken here."))
    response = _back(request)
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME, chosen, max_age=YEAR, samesite="Lax", httponly=True, secure=secure
    )
    return response


@csrf_protect
@require_POST
def zone(request: HttpRequest) -> HttpResponse:
    """Keep the display zone that was chosen. Raises Invalid for a name that is no IANA zone."""
    chosen = request.POST.get("zone", "").strip()
    if zone_of(chosen) is None:
        raise Invalid(_("There is no time zone of this name. Write one such as America/Sao_Paulo or UTC."))
    response = _back(request)
    response.set_cookie(COOKIE, chosen, max_age=YEAR, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE)
    return response
