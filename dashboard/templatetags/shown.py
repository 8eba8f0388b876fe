"""How values are shown: a state's word and mark, clocks that the page moves, numbers, shortened ids."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobs import wording
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


register.filter("actor", wording.actor_name)
register.filter("clock", wording.clock)
register.filter("span", wording.span)
register.filter("limit", wording.limit)
register.filter("count", wording.count)
register.filter("size", wording.size)


def _filled(value: Any, say: Callable[[Any], str]) -> str:
    return wording.NOTHING if value is None else say(value)


@register.filter
def instant(value: datetime | None) -> str:
    """The time of day in the viewer's zone, to the second."""
    return _filled(value, lambda at: f"{timezone.localtime(at):%H:%M:%S}")


@register.filter
def stamp(value: datetime | None) -> str:
    """Day and second in the viewer's zone."""
    return _filled(value, wording.stamp)


@register.filter
def day(value: datetime | None) -> str:
    """The day in words where it is near, and the minute."""
    return _filled(value, wording.day)


@register.filter
def exact(value: datetime | None) -> str:
    """The instant in the viewer's zone and in UTC, for titles."""
    return _filled(value, wording.exact)


@register.simple_tag
def since(seconds: float | None) -> str | SafeString:
    """A stopwatch that the page moves: `seconds` at the instant of the rendering."""
    if seconds is None:
        return wording.NOTHING
    return format_html('<time data-since="{}">{}</time>', max(0, int(seconds)), wording.clock(seconds))


@register.simple_tag
def countdown(seconds: float | None) -> str | SafeString:
    """A stopwatch that runs down to 0:00."""
    if seconds is None:
        return wording.NOTHING
    return format_html('<time data-until="{}">{}</time>', max(0, int(seconds)), wording.clock(seconds))


@register.simple_tag
def ago(seconds: float | None, at: datetime | None = None) -> str | SafeString:
    """An age in words that the page moves, with the exact instant in its title. `seconds` None: counted from `at`."""
    if seconds is None:
        if at is None:
            return wording.NOTHING
        seconds = (timezone.now() - at).total_seconds()
    said = wording.ago(seconds, at)
    if at is None:
        return format_html('<time data-ago="{}">{}</time>', max(0, int(seconds)), said)
    return format_html(
        '<time data-ago="{}" datetime="{}" title="{}">{}</time>',
        max(0, int(seconds)),
        at.isoformat(timespec="seconds"),
        wording.exact(at),
        said,
    )


@register.filter(name="ago")
def age(value: datetime | None) -> float | None:
    """Seconds since an instant, by this machine's clock: only where the database gave no age."""
    return None if value is None else (timezone.now() - value).total_seconds()


@register.filter
def short_id(value: Any) -> str:
    """The two ends of an id."""
    text = str(value)
    return f"{text[:8]}…{text[-4:]}"
