"""Pages behind the login: whoever may not see one is sent to /entrar and comes back afterwards."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from jobs import access
from jobs.errors import Unauthorized
from jobs.reconnect import replace_broken

View = Callable[..., HttpResponse]


def signed_in(view: View) -> View:
    """Only for browsers that may see pages. Programs get 401, a house without a key 403."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        replace_broken()
        if access.may_see_pages(request):
            return view(request, *args, **kwargs)
        if "text/html" in request.META.get("HTTP_ACCEPT", ""):
            return redirect(f"{reverse('sign-in')}?{urlencode({'next': request.get_full_path()})}")
        raise Unauthorized(_("Sign in at /entrar, or use the API with the X-Turno-Key header."))

    return guarded


def safe_next(request: HttpRequest, wanted: str | None) -> str:
    """Where to go after the login: a page of this house, else the first one."""
    home = str(reverse("home"))
    if not wanted or not wanted.startswith("/"):
        return home
    good = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if good else home


def came_from(request: HttpRequest) -> str:
    """Where to go after an act without a script: what its form says (`next`), else the page that it was on."""
    wanted = request.POST.get("next")
    if not wanted:
        try:
            page = urlsplit(request.headers.get("Referer", ""))
        except ValueError:  # it is whatever the browser sent
            return safe_next(request, None)
        if page.netloc == request.get_host():
            wanted = page._replace(scheme="", netloc="", fragment="").geturl()
    return safe_next(request, wanted)
