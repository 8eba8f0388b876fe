"""What a person does on a page: one decorator for who may, one answer for what came of it.

A script posts the form and shows the answer as a toast; without a script the same post leads back to the page.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from dashboard import shared
from dashboard.views.guard import came_from, signed_in
from jobs import access
from jobs.errors import Forbidden

BY_SCRIPT = "X-Turno-Act"
View = Callable[..., HttpResponse]


def act(view: View) -> View:
    """A POST with a CSRF token by somebody who may operate. Raises Unauthorized or Forbidden."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not access.may_operate(request):
            raise Forbidden(access.looks_only())
        return view(request, *args, **kwargs)

    return require_POST(csrf_protect(signed_in(guarded)))


def done(
    request: HttpRequest,
    toast: str,
    *,
    detail: str = "",
    link: tuple[str, str] | None = None,
    go: str | None = None,
) -> HttpResponse:
    """The answer to an act: `toast` and `detail` in words, `link` (address, words), `go`: the page to show next."""
    shared.forget()
    if request.headers.get(BY_SCRIPT):
        said: dict[str, Any] = {"toast": toast, "detail": detail, "go": go, "refresh": True}
        if link is not None:
            said["link"] = {"href": link[0], "text": link[1]}
        return JsonResponse(said)
    return HttpResponseRedirect(go or came_from(request))
