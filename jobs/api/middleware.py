"""The frame of every answer: what no view should see is refused here, and every error looks like one of ours.

Programs get Problem Details; browsers (which ask for text/html) get a page that says what to do.
"""

import sys
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from jobs.api import problems
from jobs.conf import conf
from jobs.errors import Invalid, PayloadTooLarge, Refused

PROGRAMS = ("/api", "/openapi", "/health")
PAGES = frozenset({400, 403, 404, 500, 503})
HEADERS = {
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def for_program(request: HttpRequest) -> bool:
    """An error of this request is told as Problem Details: not asked for by a browser that navigates."""
    return _is_program(request.path_info) or "text/html" not in request.META.get("HTTP_ACCEPT", "")


def _is_program(path: str) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in PROGRAMS)


def error_answer(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A refusal in the form and the language that the request asks for."""
    with translation.override(translation.get_language_from_request(request)):
        if for_program(request):
            return problems.response(request, refused)
        page = refused.status if refused.status in PAGES else (400 if refused.status < 500 else 500)
        context = {"refused": refused, "error_id": refused.extra.get("error_id")}
        html = render_to_string(f"{page}.html", context, request=request)
        headers = problems.headers_of(refused) | {"Vary": "Accept-Language"}
        return HttpResponse(html, status=refused.status, headers=headers)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500: knows a lost database from a fault of ours."""
    return error_answer(request, problems.as_refused(_current_error()))


def _current_error() -> Exception:
    error = sys.exc_info()[1]
    return error if isinstance(error, Exception) else RuntimeError("no error is being handled")


def _bounded_body(request: HttpRequest) -> None:
    """Read the body up to its limit, also when no length was announced. Raises PayloadTooLarge or Invalid."""
    limit = conf().limits.request
    announced = request.META.get("CONTENT_LENGTH") or "0"
    too_large = PayloadTooLarge(_("The request is larger than %(limit)d bytes.") % {"limit": limit}, limit=limit)
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise too_large
    try:
        raw = request.read(limit + 1)
    except UnreadablePostError:
        raise Invalid(_("The body broke off.")) from None
    if len(raw) > limit:
        raise too_large
    request._body = raw


def _look(request: HttpRequest) -> None:
    """What no view should see, or not as it came. Raises Refused."""
    query = request.META.get("QUERY_STRING", "")
    if "\0" in request.path_info or "\0" in query or "%00" in query:
        raise Invalid(_("An address can't hold a NUL character."))
    try:
        request.get_host()
    except DisallowedHost:
        raise Invalid(_("This host name is not served. Add it to TURNO_WEB__ALLOWED_HOSTS to use it.")) from None
    if request.method in {"POST", "PUT", "PATCH", "DELETE"}:
        _bounded_body(request)
    if request.method == "HEAD" and _is_program(request.path_info):
        request.method = "GET"  # ninja knows no HEAD; the server sends the headers alone


class ProblemMiddleware:
    """Around all other middleware but what only adds headers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            _look(request)
        except Refused as refused:
            return self._finish(request, error_answer(request, refused))
        return self._finish(request, self.get_response(request))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Errors of the pages' views that say what they are; the others are Django's to convert."""
        return error_answer(request, exception) if isinstance(exception, Refused) else None

    def _finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if (
            response.status_code >= 400
            and response.headers.get("Content-Type", "") != problems.MEDIA_TYPE
            and for_program(request)
        ):
            kept = {name: response.headers[name] for name in ("Allow", "Retry-After") if name in response.headers}
            with translation.override(translation.get_language_from_request(request)):
                response = problems.of_status(request, response.status_code, kept)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.path_info.startswith(settings.STATIC_URL):
            response.headers.setdefault("Cache-Control", "no-store")  # all else is private or of this moment
        return response
