"""The errors of Turno, one small tree. Each knows its problem's title (a gettext message) and HTTP status.

`JobError` and below are what a handler raises; `Refused` and below are what a caller gets.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

type Text = str | Promise

MOST_ERRORS = 100


class TurnoError(Exception):
    """Base of every error that Turno raises by itself."""


class JobError(TurnoError):
    """Base of the errors by which a handler says what should happen to its job."""


class PermanentJobError(JobError):
    """It will never work: the job ends Failed at once, with a dead letter, however many attempts are left."""


class TransientJobError(JobError):
    """It may work in a moment: tried again at once, within the same attempt, before the attempt is counted failed."""


class Snooze(JobError):
    """Not now: the job runs again after `delay` seconds; no attempt is counted. May be raised or returned.

    Less than 0, and what is no number (NaN), is 0; at most ten years count. Raises TypeError or ValueError for what is
    not a number of seconds.
    """

    def __init__(self, delay: float, reason: str = "") -> None:
        try:
            seconds = max(0.0, float(delay))
        except OverflowError:  # a whole number that no float holds
            seconds = math.inf if delay > 0 else 0.0
        super().__init__(reason or f"snoozed for {seconds:g} s")
        self.delay = seconds


class JobTimeout(JobError):
    """The attempt ran longer than its limit, which the message names."""


class JobCancelled(JobError):
    """Raised inside a handler by `ctx.raise_if_cancelled()`, when somebody cancelled the job."""


class LeaseLost(JobError):
    """This worker no longer owns the job: what the handler does from here on is discarded."""


class ResultError(JobError):
    """The result can't be stored as JSON; the message names the type and where in the result it stands."""


class Refused(TurnoError):
    """Base of what a caller is told: `detail` for people, `errors` by field, `title` and `status` of the problem."""

    title: Text = _("The request was refused")
    status = 400
    code = "refused"

    def __init__(self, detail: Text, *, errors: Mapping[str, Sequence[Text]] | None = None, **extra: Any) -> None:
        super().__init__(str(detail))
        self.detail = detail
        self.errors = {field: list(messages) for field, messages in (errors or {}).items()}
        self.extra = extra


class Invalid(Refused):
    """Some field is wrong; `errors` says which, and what was expected."""

    title = _("Invalid data")
    code = "invalid"


class UnknownType(Invalid):
    """No handler of this type is registered here."""

    title = _("Unknown job type")
    code = "unknown_type"


class PayloadTooLarge(Refused):
    """The payload or the request exceeds its limit in bytes."""

    title = _("Too large")
    status = 413
    code = "too_large"


class Unauthorized(Refused):
    """No valid access key came with the request."""

    title = _("Access key required")
    status = 401
    code = "unauthorized"


class Forbidden(Refused):
    """Known, and not allowed."""

    title = _("Not allowed")
    status = 403
    code = "forbidden"


class NotFound(Refused):
    """There is no such thing, or not any more."""

    title = _("Not found")
    status = 404
    code = "not_found"


class Conflict(Refused):
    """The thing's current state does not allow it; `extra["state"]` names that state where it is a job."""

    title = _("Conflict")
    status = 409
    code = "conflict"


class IdempotencyMismatch(Refused):
    """The Idempotency-Key was used before with another request body."""

    title = _("Idempotency-Key used with another request")
    status = 422
    code = "idempotency_mismatch"


class TooManyRequests(Refused):
    """Too many wrong keys from this address; `extra["retry_after"]` is in seconds."""

    title = _("Too many attempts")
    status = 429
    code = "too_many_attempts"


class Unavailable(Refused):
    """The database does not answer at the moment; what was asked may or may not have been done."""

    title = _("Database unavailable")
    status = 503
    code = "unavailable"


def refused_fields(errors: Mapping[str, Sequence[Text]], kind: type[Refused] = Invalid, **extra: Any) -> Refused:
    """The refusal that names what is wrong by field: MOST_ERRORS fields at most, the first of them in its `detail`."""
    names = list(errors)
    if len(names) == 1:
        text = f"{names[0]}: {errors[names[0]][0]}"
    else:
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        text = gettext("%(count)d fields are wrong: %(names)s") % {"count": len(names), "names": shown}
    return kind(text, errors={name: errors[name] for name in names[:MOST_ERRORS]}, **extra)
