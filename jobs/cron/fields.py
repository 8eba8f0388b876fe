"""The text of a cron expression, field by field: what each means as data, or which field is wrong and why.

Five fields (minute, hour, day, month, weekday) or six with seconds first; the dialect is Vixie's with the additions of
Quartz (`?`, `L`, `LW`, `15W`, `5L`, `5#2`). A range whose end comes first goes over the end of its field: FRI-MON,
22-2.
"""

import re
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from jobs.errors import Invalid

LONGEST = 200  # characters
SHOWN = 20  # characters of what was written, in a refusal
OUTSIDE = " \t\r\n"  # may stand before and after it
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FOREIGN = re.compile(r"[^A-Za-z0-9*?,/#@ \t-]")
_NEAREST = re.compile(r"([0-9]+)w")
_LAST = re.compile(r"([0-9]+|[a-z]{3})l")
_NTH = re.compile(r"([0-9]+|[a-z]{3})#([0-9]+)")
_DIGITS = re.compile(r"[0-9]+")


class BadCron(Invalid):
    """A schedule that is refused: `field` is "cron" or "timezone", `part` the part of the expression that is wrong
    ("minute", "weekday" …; "" for the whole), `reason` says why, in the language of whoever asked."""

    def __init__(self, reason: str, *, field: str = "cron", part: str = "", label: object = "") -> None:
        text = f"{label}: {reason}" if label else reason
        super().__init__(f"{field}: {text}", errors={field: [text]})
        self.field = field
        self.part = part
        self.reason = reason


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A field's name, that for people, its bounds, and names for its values."""

    name: str
    label: Promise
    least: int
    most: int
    names: tuple[str, ...] = ()

    @property
    def span(self) -> int:
        """How many values there are."""
        return self.most - self.least + 1

    def bad(self, reason: str) -> BadCron:
        """The refusal of this field."""
        return BadCron(reason, part=self.name, label=self.label)


SECOND = Kind("second", pgettext_lazy("part of a cron expression", "second"), 0, 59)
MINUTE = Kind("minute", pgettext_lazy("part of a cron expression", "minute"), 0, 59)
HOUR = Kind("hour", pgettext_lazy("part of a cron expression", "hour"), 0, 23)
DAY = Kind("day", pgettext_lazy("part of a cron expression", "day"), 1, 31)
MONTH = Kind("month", pgettext_lazy("part of a cron expression", "month"), 1, 12, MONTHS)
WEEKDAY = Kind("weekday", pgettext_lazy("part of a cron expression", "weekday"), 0, 6, WEEKDAYS)
KINDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `values` that match, 0 for Sunday; `star`: its text begins with `*` or `?` (Vixie's star flag).

    Of days besides: `last` day of the month, `last_weekday` (LW), `nearest` (15W); of weekdays: `nth`, each a weekday
    and 1 to 5, or 0 for the last one of the month.
    """

    kind: Kind
    text: str
    values: frozenset[int]
    star: bool
    last: bool = False
    last_weekday: bool = False
    nearest: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()

    @property
    def special(self) -> bool:
        """Whether some of its days are told by the month they are in."""
        return self.last or self.last_weekday or bool(self.nearest or self.nth)

    @property
    def whole(self) -> bool:
        """Whether every value matches."""
        return len(self.values) == self.kind.span


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: `text` as written, and its six fields."""

    text: str
    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def interval(self) -> bool:
        """Whether it runs by real time: a `*`, `/` or `-` in second, minute or hour. Else its times are fixed ones."""
        return any(mark in part.text for part in (self.second, self.minute, self.hour) for mark in "*/-")

    @property
    def either(self) -> bool:
        """Whether a day that suits one of day and weekday is enough. Where one of them is starred both must suit."""
        return not (self.day.star or self.weekday.star)

    @property
    def every_day(self) -> bool:
        """Whether neither day nor weekday leaves any day out."""
        return (self.day.whole or self.weekday.whole) if self.either else (self.day.whole and self.weekday.whole)


def read(text: object) -> Expression:
    """What an expression means. Raises BadCron; whether it ever comes is not looked at."""
    if not isinstance(text, str) or not (plain := text.strip(OUTSIDE).lower()):
        raise BadCron(_("Expected an expression such as 0 7 * * 1-5."))
    if len(plain) > LONGEST:
        raise BadCron(_("Expected at most %(most)d characters.") % {"most": LONGEST})
    if foreign := _FOREIGN.search(text.strip(OUTSIDE)):
        character = foreign[0] if foreign[0].isprintable() else f"U+{ord(foreign[0]):04X}"
        raise BadCron(_("Unexpected character: %(character)s") % {"character": character})
    alias = plain.startswith("@")
    if alias and plain not in ALIASES:
        raise BadCron(_("Expected one of: %(known)s.") % {"known": ", ".join(sorted(ALIASES))})
    parts = ALIASES.get(plain, plain).split()
    if len(parts) not in (5, 6):
        raise BadCron(_("Expected 5 fields, or 6 with seconds first; got %(count)d.") % {"count": len(parts)})
    six = parts if len(parts) == 6 else ["0", *parts]
    second, minute, hour, day, month, weekday = (_field(kind, part) for kind, part in zip(KINDS, six, strict=True))
    written = plain if alias else " ".join(text.split())
    return Expression(written, second, minute, hour, day, month, weekday)


def _field(kind: Kind, text: str) -> Field:
    values: set[int] = set()
    nearest: set[int] = set()
    nth: set[tuple[int, int]] = set()
    parts = text.split(",")
    for part in parts:
        if part == "?" and len(parts) == 1 and kind in (DAY, WEEKDAY):
            values.update(range(kind.least, kind.most + 1))
        elif kind is DAY and part in ("l", "lw"):
            continue
        elif kind is DAY and (found := _NEAREST.fullmatch(part)):
            nearest.add(_number(kind, found[1]))
        elif kind is WEEKDAY and (found := _LAST.fullmatch(part)):
            nth.add((_number(kind, found[1]) % 7, 0))
        elif kind is WEEKDAY and (found := _NTH.fullmatch(part)):
            nth.add((_number(kind, found[1]) % 7, _occurrence(found[2])))
        else:
            values.update(_values(kind, part))
    return Field(
        kind,
        text,
        frozenset(values),
        star=text[0] in "*?",
        last="l" in parts,
        last_weekday="lw" in parts,
        nearest=frozenset(nearest),
        nth=frozenset(nth),
    )


def _values(kind: Kind, part: str) -> range | list[int]:
    """The values of one part of a list: `*`, a value, a range, each with or without a step."""
    body, slash, step_text = part.partition("/")
    if not body:
        raise kind.bad(_("A part of it is empty."))
    step = _step(kind, step_text) if slash else 1
    if body == "*":
        return range(kind.least, kind.most + 1, step)
    if body == "?":
        if kind in (DAY, WEEKDAY):
            raise kind.bad(_("? stands alone."))
        raise kind.bad(_("? is for the day and the weekday only."))
    first_text, dash, last_text = body.partition("-")
    first = _number(kind, first_text)
    last = _number(kind, last_text) if dash else kind.most if slash else first
    if kind is WEEKDAY and last == 7 and dash:  # Sunday as the end of a range
        return [day % 7 for day in range(first, 8, step)]
    if kind is WEEKDAY:
        first, last = first % 7, last % 7
    if last < first:
        last += kind.span
    return [(value - kind.least) % kind.span + kind.least for value in range(first, last + 1, step)]


def _step(kind: Kind, text: str) -> int:
    if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= kind.span:
        expected = {"most": kind.span, "text": _shown(text)}
        raise kind.bad(_("Expected a step from 1 to %(most)d; got %(text)s.") % expected)
    return int(text)


def _number(kind: Kind, text: str) -> int:
    if text in kind.names:
        return kind.names.index(text) + kind.least
    most = 7 if kind is WEEKDAY else kind.most
    if not _DIGITS.fullmatch(text) or not kind.least <= int(text) <= most:
        expected = {"least": kind.least, "most": most, "text": _shown(text)}
        if kind.names:
            expected |= {"first": kind.names[0].upper(), "last": kind.names[-1].upper()}
            reason = _("Expected %(least)d to %(most)d or %(first)s to %(last)s; got %(text)s.")
        else:
            reason = _("Expected %(least)d to %(most)d; got %(text)s.")
        raise kind.bad(reason % expected)
    return int(text)


def _occurrence(text: str) -> int:
    if text not in ("1", "2", "3", "4", "5"):
        raise WEEKDAY.bad(_("Expected #1 to #5; got %(text)s.") % {"text": _shown(f"#{text}")})
    return int(text)


def _shown(text: str) -> str:
    """What was written, as the refusal shows it."""
    return f"“{text[:SHOWN].upper()}”"
