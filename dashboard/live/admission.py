"""Who may open a socket: the rules of `jobs.access`, and for browsers the Origin, which no cookie proves.

A page of another site can open a socket to here, with the viewer's cookie; only the Origin header tells it apart.
"""

from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from jobs import access
from jobs.conf import conf
from jobs.errors import Forbidden, TooManyRequests, Unauthorized
from jobs.reconnect import replace_broken

# What of the site's middleware says who a request is; the rest is for answers.
WHO = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)


def request_of(scope: dict[str, Any]) -> HttpRequest:
    """The handshake as the request that it is, with its session."""
    secure = scope.get("scheme") in {"https", "wss"}
    handshake = {**scope, "type": "http", "method": "GET", "scheme": "https" if secure else "http"}
    request: HttpRequest = ASGIRequest(handshake, BytesIO())
    for name in WHO:
        if name in settings.MIDDLEWARE:
            middleware: type[SessionMiddleware] = import_string(name)
            middleware(lambda _request: HttpResponse()).process_request(request)
    return request


def own_origin(request: HttpRequest) -> bool | None:
    """Whether the page that asks is one of this house; None: no page asks, no browser leaves its Origin out."""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None:
        return None
    # Behind a proxy that ends TLS the request itself looks plain; such a house has secure cookies.
    scheme = "https" if request.is_secure() or conf().web.secure_cookies else "http"
    own = f"{scheme}://{request.get_host()}"
    return _normal(origin) == _normal(own) or origin in settings.CSRF_TRUSTED_ORIGINS


def _normal(origin: str) -> tuple[str, str, int | None]:
    parts = urlsplit(origin)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), port


def page(scope: dict[str, Any]) -> None:
    """A page of the dashboard. Raises Unauthorized or Forbidden."""
    request = request_of(scope)
    if not _own(request):
        raise Forbidden(_("Requests from pages of another site are refused."))
    if not access.may_see_pages(request):
        raise Unauthorized(_("Sign in at /entrar, or use the API with the X-Turno-Key header."))


def program(scope: dict[str, Any]) -> None:
    """A program with the key, or a browser with a session. Raises Unauthorized, Forbidden or TooManyRequests."""
    request = request_of(scope)
    if _own(request) is False:
        raise Forbidden(_("Requests from pages of another site are refused."))
    access.enter(request)


def _own(request: HttpRequest) -> bool | None:
    try:
        request.get_host()
        return own_origin(request)
    except (DisallowedHost, ValueError):  # a host that is not served here, an Origin that can't be read
        return False


class Admission:
    """Asked at the handshake and again while the socket is open."""

    def __init__(self, rule: Any, scope: dict[str, Any]) -> None:
        self._rule = rule
        self._scope = scope

    async def granted(self) -> bool:
        """At the handshake: whatever can't be made sure of is refused."""
        try:
            await database_sync_to_async(self._ask)()
        except (Unauthorized, Forbidden, TooManyRequests, Error):
            return False
        return True

    async def ended(self) -> bool:
        """While it is open: only a clear no ends it; a database that is away does not."""
        try:
            await database_sync_to_async(self._ask)()
        except (Unauthorized, Forbidden):
            return True
        except (TooManyRequests, Error):
            return False
        return False

    def _ask(self) -> None:
        replace_broken()
        self._rule(self._scope)
