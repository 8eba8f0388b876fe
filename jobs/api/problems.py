"""Errors as Problem Details (RFC 9457): one table says which error has which status; nothing else does."""

import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import psycopg
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError, ProgrammingError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from ninja.errors import AuthenticationError, HttpError, ValidationError

from jobs import errors, payloads
from jobs.errors import Refused, Text

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
LOCATIONS = frozenset({"body", "query", "path", "header", "cookie", "form"})

# What is said of a status that Django or the server answered by itself.
STATUS_WORDS: dict[int, tuple[Text, Text]] = {
    400: (_("Bad request"), _("The request can't be understood. Check its address, headers and body.")),
    401: (_("Access key required"), _("Send the access key in the X-Turno-Key header.")),
    403: (_("Not allowed"), _("This is not allowed for you, or the page's token is missing or old.")),
    404: (_("Not found"), _("There is nothing at this address. The routes are listed at /docs.")),
    405: (
        _("Method not allowed"),
        _("This address does not accept this method; the Allow header names those it accepts."),
    ),
    413: (_("Too large"), _("The request is larger than the limit.")),
    415: (_("Unsupported media type"), _("Send the body as application/json.")),
    429: (_("Too many attempts"), _("Wait a moment and try again.")),
    500: (_("Internal error"), _("Something failed on our side. The log has the details under this error's id.")),
    503: (
        _("Database unavailable"),
        _(
            "The database does not answer at the moment. What you sent may not have been stored: repeat it with the"
            " same Idempotency-Key."
        ),
    ),
}


# Their names for programs; of other statuses "refused".
CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many_attempts",
    500: "internal",
    503: "unavailable",
}


class UnsupportedMediaType(Refused):
    """A body came in another form than JSON."""

    title = _("Unsupported media type")
    status = 415
    code = "unsupported_media_type"


def _invalid(error: Exception) -> Refused:
    found: dict[str, list[Text]] = {}
    for item in getattr(error, "errors", []):
        where = [str(part) for part in item["loc"]]
        source, rest = where[0], where[1:]
        if source in LOCATIONS and source != "path" and len(rest) > 1:
            rest = rest[1:]  # the name of the function's own parameter
        elif source == "body":
            rest = []
        if rest[:1] == ["jobs"] and len(rest) > 2:
            rest = rest[1:]  # of a batch: "3.priority", as `jobs.enqueue` names its errors
        name = ".".join(part[:200] for part in rest) or source
        found.setdefault(name, []).append(payloads.message(item))
    return errors.refused_fields(found)


def _http(error: Exception) -> Refused:
    """What ninja wraps: it parses the body inside a try of its own."""
    if isinstance(error.__cause__, Exception) and isinstance(error.__cause__, (Refused, SuspiciousOperation)):
        return as_refused(error.__cause__)
    return _of_status(getattr(error, "status_code", 400))


def _of_status(status: int, code: str = "") -> Refused:
    title, detail = STATUS_WORDS.get(status, STATUS_WORDS[400 if status < 500 else 500])
    made = Refused(detail)
    made.title, made.status, made.code = title, status, code or CODES.get(status, made.code)
    return made


def _unavailable(_error: Exception) -> Refused:
    return errors.Unavailable(STATUS_WORDS[503][1], retry_after=RETRY_AFTER)


def _programming(error: Exception) -> Refused | None:
    if not isinstance(error.__cause__, (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)):
        return None
    return errors.Unavailable(
        _("The database's tables are missing or out of date: run manage.py migrate."), retry_after=RETRY_AFTER
    )


def _status(status: int, code: str = "") -> Callable[[Exception], Refused]:
    return lambda _error: _of_status(status, code)


# The table: error -> what the caller is told. The first class that fits holds; what fits none is a 500.
TABLE: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Exception], Refused | None]], ...] = (
    (Refused, lambda error: error if isinstance(error, Refused) else None),
    (ValidationError, _invalid),
    (AuthenticationError, _status(401)),
    (HttpError, _http),
    (Http404, _status(404)),
    (PermissionDenied, _status(403)),
    (RequestDataTooBig, _status(413)),
    ((SuspiciousOperation, BadRequest, UnreadablePostError), _status(400)),
    ((OperationalError, InterfaceError), _unavailable),
    (ProgrammingError, _programming),
    (DataError, _status(400, "invalid")),
)


def as_refused(error: Exception) -> Refused:
    """What a caller is told of any error; for one that is nobody's fault but ours, a 500 logged under an id."""
    for kinds, told in TABLE:
        if isinstance(error, kinds):
            refused = told(error)
            if refused is not None:
                if isinstance(error, (OperationalError, InterfaceError)):
                    logger.warning("database: %s", str(error).splitlines()[0] if str(error) else type(error).__name__)
                return refused
    return internal(error)


def internal(error: BaseException | None) -> Refused:
    """An error of ours: logged with its traceback under an id that the caller gets, and nothing more."""
    id_ = str(uuid.uuid4())
    logger.error("unexpected error %s", id_, exc_info=error)
    made = _of_status(500)
    made.extra = {"error_id": id_}
    return made


def _plain(value: Any) -> str:
    return str(value)


def body(request: HttpRequest, refused: Refused) -> dict[str, Any]:
    """The members of the problem, in the active language."""
    members: dict[str, Any] = {
        "title": str(refused.title),
        "status": refused.status,
        "detail": str(refused.detail),
        "instance": request.path,
        "code": refused.code,
    }
    if refused.errors:
        members["errors"] = {
            field: [str(message) for message in messages] for field, messages in refused.errors.items()
        }
    return members | {name: value for name, value in refused.extra.items() if value is not None}


def headers_of(refused: Refused) -> dict[str, str]:
    """The headers that belong to the answer besides its type."""
    found = {"Cache-Control": "no-store"}
    if refused.status == 401:
        found["WWW-Authenticate"] = 'Bearer realm="Turno"'
    if "retry_after" in refused.extra:
        found["Retry-After"] = str(refused.extra["retry_after"])
    return found


def response(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The answer for a program."""
    raw = orjson.dumps(body(request, refused), default=_plain)
    headers = headers_of(refused) | {
        "Content-Length": str(len(raw)),
        "Content-Language": translation.get_language() or "",
        "Vary": "Accept-Language",
    }
    made = HttpResponse(raw, status=refused.status, content_type=MEDIA_TYPE, headers=headers)
    made._has_been_logged = True  # `as_refused` has said what there is to say; Django would log each 503 once more
    return made


def of_status(request: HttpRequest, status: int, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """The problem for an answer that had a status and no words of ours; keeps the given headers."""
    made = response(request, _of_status(status))
    for name, value in (headers or {}).items():
        made.setdefault(name, value)
    return made
