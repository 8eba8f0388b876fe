"""The login, by access key or by user and password. A key is compared and forgotten; the session keeps a proof that
dies with the key, or the user, whose password and rights are looked at again with each request."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.views.guard import safe_next
from jobs import access
from jobs.errors import Refused, TooManyRequests, Unauthorized
from jobs.reconnect import replace_broken

KEY, USER = "chave", "usuario"
ADMIN = "/admin/"


def _told(refused: Refused) -> str:
    left = refused.extra.get("tries_left")
    if left is None:
        return str(refused.detail)
    more = ngettext("%(left)d more try this minute.", "%(left)d more tries this minute.", left) % {"left": left}
    return f"{refused.detail} {more}"


def _is_in(request: HttpRequest, way: str) -> bool:
    """Nothing is to be asked: they may see the pages, and did not come to act under a name."""
    if not access.may_see_pages(request):
        return False
    return way != USER or access.user_of(request) is not None


def _enter(request: HttpRequest, way: str) -> None:
    """Raises Unauthorized or TooManyRequests."""
    if way == USER:
        name, password = request.POST.get("usuario", "").strip(), request.POST.get("senha", "")
        if not name or not password:
            raise Unauthorized(_("Type the user name and the password."))
        access.sign_in_user(request, name, password)
        return
    key = request.POST.get("chave", "").strip()
    if not key:
        raise Unauthorized(_("Type the access key."))
    access.sign_in(request, key)


@never_cache
@csrf_protect
@sensitive_post_parameters("chave", "senha")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form, and what comes of it: the page that was asked for, or the form with the reason.

    `com` names the way: `usuario`, else the key. In an open house nobody has to come here; who wants to act under a
    name asks for the user's form.
    """
    if request.method == "POST":
        replace_broken()
    given = request.POST if request.method == "POST" else request.GET
    target = safe_next(request, given.get("next") or request.GET.get("next"))
    way = USER if given.get("com") == USER else KEY
    if _is_in(request, way):
        return redirect(target)
    error, status, headers = "", 200, {}
    if request.method == "POST":
        try:
            _enter(request, way)
            return redirect(target)
        except (Unauthorized, TooManyRequests) as refused:
            error, status = _told(refused), refused.status
            if "retry_after" in refused.extra:
                headers["Retry-After"] = str(refused.extra["retry_after"])
    context = {
        "next": target,
        "error": error,
        "way": way,
        "name": request.POST.get("usuario", "")[: access.LONGEST_NAME],
        "for_admin": target.startswith(ADMIN),
    }
    response = render(request, "dashboard/sign_in.html", context, status=status)
    for name, value in headers.items():
        response[name] = value
    return response


@never_cache
@csrf_protect
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session, and back to the form."""
    replace_broken()
    access.sign_out(request)
    return redirect("sign-in")
