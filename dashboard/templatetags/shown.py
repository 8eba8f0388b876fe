"""How values are shown: a state's word and mark, spans of time, shortened ids."""

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobs.states import State

register = template.Library()

WORDS: dict[str, Promise] = {
    State.SCHEDULED: pgettext_lazy("job", "Scheduled"),
    State.ENQUEUED: pgettext_lazy("job", "Queued"),
    State.PROCESSING: pgettext_lazy("job", "Running"),
    State.SUCCEEDED: pgettext_lazy("job", "Succeeded"),
    State.FAILED: pgettext_lazy("job", "Failed"),
    State.CANCELLED: pgettext_lazy("job", "Cancelled"),
    "Online": _("Online"),
    "Draining": _("Draining"),
    "Silent": _("No heartbeat"),
    "Offline": _("Stopped"),
}
MARKS = {
    State.SCHEDULED: "scheduled",
    State.ENQUEUED: "queued",
    State.PROCESSING: "running",
    State.SUCCEEDED: "success",
    State.FAILED: "failure",
    State.CANCELLED: "cancelled",
    "Online": "success",
    "Draining": "draining",
    "Silent": "failure",
    "Offline": "cancelled",
}


@register.filter
def word(state: str) -> str:
    """The word for a state of a job or a worker."""
    return str(WORDS.get(state, state))


@register.filter
def mark(state: str) -> str:
    """The name of a state's mark."""
    return MARKS.get(state, "queued")


@register.filter
def job_state(job: dict[str, Any]) -> str:
    """The state under which a job is shown: a parked one waits like a queued one, "Scheduled" has an instant."""
    parked = job["state"] == State.SCHEDULED and job["run_at"] is None
    return str(State.ENQUEUED if parked else job["state"])


@register.filter
def attempt(job: dict[str, Any]) -> int:
    """Which attempt the job is at: those used, and the one that runs."""
    return int(job["attempts_used"]) + (job["state"] == State.PROCESSING)


@register.filter
def clock(seconds: float | None) -> str:
    """A span as people read a stopwatch: 0:07, 12:40, 3:02:11."""
    if seconds is None:
        return "–"
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@register.filter
def ago(instant: datetime | None) -> float | None:
    """Seconds since an instant."""
    return None if instant is None else (timezone.now() - instant).total_seconds()


@register.filter
def until(instant: datetime | None) -> float | None:
    """Seconds to an instant, 0 when it has passed."""
    return None if instant is None else max(0.0, (instant - timezone.now()).total_seconds())


@register.filter
def short_id(value: Any) -> str:
    """The two ends of an id."""
    text = str(value)
    return f"{text[:8]}…{text[-4:]}"
