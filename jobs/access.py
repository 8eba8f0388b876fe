"""Who may come in: the one place that decides it, for the API and for the pages.

With a key configured, a request needs that key (`X-Turno-Key`, or `Authorization: Bearer`) or a session that was
opened with it. Without one the house is open only to this machine: listening on loopback, asked from loopback under a
loopback name, with no sign of a proxy in between; else it is closed, and says what to configure.

Wrong keys are throttled: five a minute and address, counted in each web process. Once an address is over the limit its
keys are not even compared until the minute is over, unless the right key came from there within the last hour: one
client with an old key must not shut out its neighbours behind the same address.
"""

import hashlib
import hmac
import ipaddress
import time
from enum import StrEnum

from django.core.cache import cache
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from jobs.conf import conf
from jobs.errors import Forbidden, TooManyRequests, Unauthorized

SESSION_FLAG = "turno_access"
FAILURES_A_MINUTE = 5
WINDOW = 60
REMEMBERED = 3600
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
FORWARDING = ("HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")


class Mode(StrEnum):
    """`key`: a key is configured; `open`: none, and this request needs none; `closed`: none, and none would do."""

    KEY = "key"
    OPEN = "open"
    CLOSED = "closed"


def _loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_name(request: HttpRequest) -> str:
    host = request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.lower().rstrip(".")


def _forwarded(request: HttpRequest) -> bool:
    return any(name in FORWARDING or name.startswith("HTTP_X_FORWARDED_") for name in request.META)


def mode(request: HttpRequest) -> Mode:
    """How this request is judged."""
    if conf().api.key:
        return Mode.KEY
    here = (
        _loopback(conf().web.bind)
        and _loopback(request.META.get("REMOTE_ADDR") or "127.0.0.1")
        and _loopback(_host_name(request))
        and not _forwarded(request)
    )
    return Mode.OPEN if here else Mode.CLOSED


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


def _right(presented: bytes) -> bool:
    """Constant time in the key: digests of equal length are compared."""
    expected = (conf().api.key or "").encode("utf-8", "surrogatepass")
    return bool(expected) and hmac.compare_digest(_digest(presented), _digest(expected))


def presented_key(request: HttpRequest) -> bytes | None:
    """The key that came in a header, as bytes; None when none came. Header text is latin-1 by the standard."""
    value = request.META.get("HTTP_X_TURNO_KEY", "")
    if not value:
        scheme, _space, rest = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        value = rest.strip() if scheme.lower() == "bearer" else ""
    return value.encode("latin-1", "replace") if value else None


def _address(request: HttpRequest) -> str:
    """Whom failures are counted against: the peer's address, for IPv6 its /64 network."""
    address = request.META.get("REMOTE_ADDR") or "local"
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if parsed.version == 6:
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return address


def _fail(address: str) -> int:
    """Count a failure; answers how many tries are left in this minute."""
    cache.add(f"turno:until:{address}", time.time() + WINDOW, WINDOW)
    cache.add(f"turno:failures:{address}", 0, WINDOW)
    try:
        failures = cache.incr(f"turno:failures:{address}")
    except ValueError:  # the minute ended between the two lines
        failures = 1
    return max(0, FAILURES_A_MINUTE - failures)


def _over_limit(address: str) -> int:
    """Seconds until keys are compared again; 0 when they are."""
    if cache.get(f"turno:failures:{address}", 0) < FAILURES_A_MINUTE:
        return 0
    return max(1, round(cache.get(f"turno:until:{address}", 0) - time.time()))


def check_key(request: HttpRequest, presented: bytes) -> None:
    """Passes when `presented` is the key. Raises Unauthorized (`tries_left`), or TooManyRequests (`retry_after`)."""
    address = _address(request)
    wait = _over_limit(address)
    known = f"turno:known:{address}"
    if wait and not cache.get(known):
        raise TooManyRequests(
            _("Too many wrong keys from this address. Try again in %(seconds)d s.") % {"seconds": wait},
            retry_after=wait,
        )
    if _right(presented):
        cache.set(known, True, REMEMBERED)
        return
    if wait:
        raise TooManyRequests(
            _("Too many wrong keys from this address. Try again in %(seconds)d s.") % {"seconds": wait},
            retry_after=wait,
        )
    raise Unauthorized(_("The key was not accepted."), tries_left=_fail(address))


def _fingerprint() -> str:
    """What a session holds: it proves the key and does not tell it. Another key, another fingerprint."""
    return salted_hmac("turno.access", conf().api.key or "", algorithm="sha256").hexdigest()


def has_session(request: HttpRequest) -> bool:
    """The browser's session was opened with the key that is configured now."""
    flag = request.session.get(SESSION_FLAG, "")
    return isinstance(flag, str) and hmac.compare_digest(flag.encode(), _fingerprint().encode())


def sign_in(request: HttpRequest, key: str) -> None:
    """Open a session with the key typed into the form. Raises as `check_key` does; nothing of the key is kept."""
    check_key(request, key.encode("utf-8", "surrogatepass"))
    request.session.cycle_key()
    request.session[SESSION_FLAG] = _fingerprint()


def sign_out(request: HttpRequest) -> None:
    """End the browser's session."""
    request.session.flush()


def _refuse_foreign_page(request: HttpRequest) -> None:
    """In an open house a page of another site must not act through the browser of somebody at this machine."""
    site = request.META.get("HTTP_SEC_FETCH_SITE", "same-origin")
    origin = request.META.get("HTTP_ORIGIN")
    own = f"{request.scheme}://{request.META.get('HTTP_HOST', '')}"
    if site not in {"same-origin", "none"} or (origin is not None and origin != own):
        raise Forbidden(_("Requests from pages of another site are refused."))


def _refuse_forged(request: HttpRequest) -> None:
    check = CsrfViewMiddleware(lambda _request: None)
    request.csrf_processing_done = False
    check.process_request(request)
    if check.process_view(request, lambda: None, (), {}) is not None:
        raise Forbidden(_("The form's token is missing or old. Load the page again and repeat."))


def enter(request: HttpRequest) -> str:
    """Lets an API request in, and answers who acts ("key", "session" or "open"), for the time line.

    Raises Unauthorized, Forbidden or TooManyRequests. A session's unsafe requests need the CSRF token; a key's do not.
    """
    unsafe = request.method not in SAFE_METHODS
    how = mode(request)
    if how is Mode.CLOSED:
        raise Forbidden(closed_reason())
    if how is Mode.OPEN:
        if unsafe:
            _refuse_foreign_page(request)
        return "open"
    presented = presented_key(request)
    if presented is not None:
        check_key(request, presented)
        return "key"
    if has_session(request):
        if unsafe:
            _refuse_forged(request)
        return "session"
    raise Unauthorized(_("Send the access key in the X-Turno-Key header."))


def may_see_pages(request: HttpRequest) -> bool:
    """The pages are open to this browser: by its session, or because no key is needed. Raises Forbidden when closed."""
    how = mode(request)
    if how is Mode.CLOSED:
        raise Forbidden(closed_reason())
    return how is Mode.OPEN or has_session(request)


def closed_reason() -> str:
    """Why nothing is answered without a configured key, and what to do."""
    return _(
        "No access key is configured, so only requests from this machine, to a loopback name and without a proxy, "
        "are answered. Set TURNO_API__KEY (or api.key in turno.toml) and start again."
    )
