"""The login by access key. The key is compared and forgotten; the session keeps a proof that dies with the key."""

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


def _told(refused: Refused) -> str:
    left = refused.extra.get("tries_left")
    if left is None:
        return str(refused.detail)
    more = ngettext("%(left)d more try this minute.", "%(left)d more tries this minute.", left) % {"left": left}
    return f"{refused.detail} {more}"


@never_cache
@csrf_protect
@sensitive_post_parameters("chave")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form, and what comes of it: the page that was asked for, or the form with the reason."""
    if request.method == "POST":
        replace_broken()
    wanted = request.POST.get("next") or request.GET.get("next")
    target = safe_next(request, wanted)
    if access.may_see_pages(request):
        return redirect(target)
    error, status, headers = "", 200, {}
    if request.method == "POST":
        key = request.POST.get("chave", "").strip()
        try:
            if not key:
                raise Unauthorized(_("Type the access key."))
            access.sign_in(request, key)
            return redirect(target)
        except (Unauthorized, TooManyRequests) as refused:
            error, status = _told(refused), refused.status
            if "retry_after" in refused.extra:
                headers["Retry-After"] = str(refused.extra["retry_after"])
    context = {"next": target, "error": error}
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
