"""The board's words in the language of the request, looked up once for a thousand cells."""

from dataclasses import dataclass
from html import escape

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from dashboard.templatetags.shown import MARKS, WORDS
from jobs.wording import clock, count


@dataclass(frozen=True, slots=True)
class Speech:
    """Words, escaped for HTML. Those that end in `_of` and `in_` hold a `%s`."""

    states: dict[str, str]
    free: str
    shut: str
    paused: str
    slow: str
    starting: str
    cancelling: str
    back_in: str
    progress_of: str
    no_sign: str
    draining: str
    ended: str
    busy_of: str
    slots_busy_of: str
    longest: str


def speech() -> Speech:
    """The words now."""
    return Speech(
        states={state: str(WORDS[state]).lower() for state in ("Online", "Draining", "Silent", "Offline")},
        free=pgettext("slot", "free"),
        shut=_("takes no new jobs"),
        paused=_("paused"),
        slow=_("Above this type's p95"),
        starting=_("Starting"),
        cancelling=_("Cancelling"),
        back_in=_("back in %s"),
        progress_of=_("Progress of %s"),
        no_sign=_("silent for %s"),
        draining=pgettext("worker", "draining"),
        ended=pgettext("worker", "stopped"),
        busy_of=_("%(busy)s of %(slots)s"),
        slots_busy_of=_("%(busy)s of %(slots)s slots busy"),
        longest=_("Longest: %(type)s, %(elapsed)s"),
    )


def mark(name: str) -> str:
    """A state's mark; whoever needs the word says it beside it."""
    return f'<svg class="mark mark--{name}" aria-hidden="true"><use href="#m-{name}"/></svg>'


def state_mark(state: str) -> str:
    """The mark of a worker's state."""
    return mark(MARKS.get(state, "queued"))


def since(seconds: float) -> str:
    """A stopwatch that the page moves."""
    return f'<time data-since="{max(0, int(seconds))}">{clock(seconds)}</time>'


def until(seconds: float) -> str:
    """A stopwatch that runs down."""
    return f'<time data-until="{max(0, int(seconds))}">{clock(seconds)}</time>'


def workers(n: int) -> str:
    """ "6 workers"."""
    return ngettext("%(n)s worker", "%(n)s workers", n) % {"n": count(n)}


def text(value: object) -> str:
    """As it is, for HTML: nothing that a job says is markup."""
    return escape(str(value))
