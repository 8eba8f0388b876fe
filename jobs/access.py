"""Who may come in, and who may act: the one place that decides it, for the API, the pages and the admin.

With a key configured, a request needs that key (`X-Turno-Key`, or `Authorization: Bearer`), or a session that was
opened with it, or one that a user opened with a password. Without one the house is open only to this machine:
listening on loopback, asked from loopback under a loopback name, with no sign of a proxy in between; else it is
closed, and says what to configure.

Whoever has the key, and this machine in an open house, may do everything. Of the users, those with staff status and
superusers operate; the others look.

Wrong keys and passwords are throttled together: five a minute and address, counted in each web process. Once an
address is over the limit its keys are not even compared until the minute is over, unless the right key came from
there within the last hour: one client with an old key must not shut out its neighbours behind the same address.
A user name has a limit of its own over all addresses. Where a name came in lately from an address, the two together
are counted apart from both, so that nobody else's tries there or for that name lock the person out.
"""

import hashlib
import hmac
import ipaddress
import unicodedata
from enum import StrEnum
from typing import Any

from django.contrib import auth
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from jobs import throttle
from jobs.conf import conf
from jobs.errors import Forbidden, TooManyRequests, Unauthorized

SESSION_FLAG = "turno_access"
LONGEST_NAME = 150
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


def _too_many(wait: int, words: str) -> TooManyRequests:
    return TooManyRequests(words % {"seconds": wait}, retry_after=wait)


def check_key(request: HttpRequest, presented: bytes) -> None:
    """Passes when `presented` is the key. Raises Unauthorized (`tries_left`), or TooManyRequests (`retry_after`)."""
    address = throttle.address_of(request)
    wait = throttle.wait(address, throttle.FAILURES_A_MINUTE)
    over = _too_many(wait, _("Too many wrong keys from this address. Try again in %(seconds)d s."))
    if wait and not throttle.remembered(address):
        raise over
    if _right(presented):
        throttle.remember(address, throttle.REMEMBERED)
        return
    if wait:
        raise over
    left = max(0, throttle.FAILURES_A_MINUTE - throttle.count(address))
    raise Unauthorized(_("The key was not accepted."), tries_left=left)


def _authenticated(request: HttpRequest, name: str, password: str) -> Any:
    """The active user with this name and password. Raises as `check_key` does.

    A try is counted before the password is hashed, which takes long enough for many to come at once.
    """
    address, by_name = throttle.address_of(request), throttle.name_of(name)
    pair = f"{address}:{by_name}"
    limits = {address: throttle.FAILURES_A_MINUTE, by_name: throttle.NAME_FAILURES_A_MINUTE}
    if throttle.remembered(pair):
        limits = {pair: throttle.FAILURES_A_MINUTE}
    over = _("Too many wrong tries. Try again in %(seconds)d s.")
    for whom, most in limits.items():
        if wait := throttle.wait(whom, most):
            raise _too_many(wait, over)
    counted = {whom: throttle.count(whom) for whom in limits}
    for whom, most in limits.items():
        if counted[whom] > most:  # others came between the look and the count
            raise _too_many(throttle.wait(whom, most) or 1, over)
    user = None
    if name and len(name) <= LONGEST_NAME and "\0" not in name + password:
        user = auth.authenticate(request, username=name, password=password)
    if user is None:
        left = min(max(0, most - counted[whom]) for whom, most in limits.items())
        raise Unauthorized(_("The user name or the password was not accepted."), tries_left=left)
    for whom in limits:
        throttle.give_back(whom)
    throttle.remember(pair, throttle.REMEMBERED_PAIR)
    return user


def _fingerprint() -> str:
    """What a session holds: it proves the key and does not tell it. Another key, another fingerprint."""
    return salted_hmac("turno.access", conf().api.key or "", algorithm="sha256").hexdigest()


def _session(request: HttpRequest) -> Any:
    """The session; empty where a request was refused before it had one, and its error page asks."""
    return getattr(request, "session", {})


def has_session(request: HttpRequest) -> bool:
    """The browser's session was opened with the key that is configured now."""
    flag = _session(request).get(SESSION_FLAG, "")
    return isinstance(flag, str) and hmac.compare_digest(flag.encode(), _fingerprint().encode())


def user_of(request: HttpRequest) -> Any:
    """The active user whose session this is, None without one.

    Django compares the session with the user's password each time: after a change of it, or once the user is
    inactive, the session is none any more.
    """
    if auth.SESSION_KEY not in _session(request):
        return None
    user = getattr(request, "user", None) or auth.get_user(request)
    return user if user.is_authenticated and user.is_active else None


def sign_in(request: HttpRequest, key: str) -> None:
    """Open a session with the key typed into the form. Raises as `check_key` does; nothing of the key is kept."""
    check_key(request, key.encode("utf-8", "surrogatepass"))
    if auth.SESSION_KEY in request.session:
        auth.logout(request)
    request.session.cycle_key()
    request.session[SESSION_FLAG] = _fingerprint()


def sign_in_user(request: HttpRequest, name: str, password: str) -> None:
    """Open a session with a user's name and password. Raises as `check_key` does, whatever of the two was wrong."""
    user = _authenticated(request, unicodedata.normalize("NFKC", name), password)
    request.session.pop(SESSION_FLAG, None)
    auth.login(request, user)


def sign_out(request: HttpRequest) -> None:
    """End the browser's session, whichever way it was opened."""
    auth.logout(request)


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


def operates(user: Any) -> bool:
    """A user who may change something; the others only look."""
    return bool(user.is_staff or user.is_superuser)


def enter(request: HttpRequest) -> str:
    """Lets an API request in, and answers who acts ("key", "user:<name>", "session" or "open"), for the time line.

    Raises Unauthorized, Forbidden or TooManyRequests. A session's unsafe requests need the CSRF token; a key's do not.
    """
    unsafe = request.method not in SAFE_METHODS
    how = mode(request)
    if how is Mode.CLOSED:
        raise Forbidden(closed_reason())
    presented = presented_key(request) if how is Mode.KEY else None
    if presented is not None:
        check_key(request, presented)
        return "key"
    user = user_of(request)
    if user is not None or (how is Mode.KEY and has_session(request)):
        if unsafe:
            _refuse_forged(request)
        if unsafe and user is not None and not operates(user):
            raise Forbidden(looks_only())
        return actor(request)
    if how is Mode.KEY:
        raise Unauthorized(_("Send the access key in the X-Turno-Key header."))
    if unsafe:
        _refuse_foreign_page(request)
    return "open"


def may_see_pages(request: HttpRequest) -> bool:
    """The pages are open to this browser: by its session, or because no key is needed. Raises Forbidden when closed."""
    how = mode(request)
    if how is Mode.CLOSED:
        raise Forbidden(closed_reason())
    return how is Mode.OPEN or user_of(request) is not None or has_session(request)


def may_operate(request: HttpRequest) -> bool:
    """Whether the browser's act would be taken. Never raises: where the house is closed nobody operates."""
    how = mode(request)
    if how is Mode.CLOSED:
        return False
    user = user_of(request)
    if user is not None:
        return operates(user)
    return how is Mode.OPEN or has_session(request)


def actor(request: HttpRequest) -> str:
    """Who acts on the pages, for the time line: "user:<name>", "open" or "session"."""
    user = user_of(request)
    if user is not None:
        return f"user:{user.get_username()}"
    return "open" if mode(request) is Mode.OPEN else "session"


def looks_only() -> str:
    """What a user is told who may look and not act, and what to do."""
    return _("Your user may look and not act: ask an administrator for the operator's rights.")


def closed_reason() -> str:
    """Why nothing is answered without a configured key, and what to do."""
    return _(
        "No access key is configured, so only requests from this machine, to a loopback name and without a proxy, "
        "are answered. Set TURNO_API__KEY (or api.key in turno.toml) and start again."
    )
