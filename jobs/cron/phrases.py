"""Small pieces of sentences: lists, numbers, clock times, names of months and weekdays. In the active language."""

from collections.abc import Sequence
from itertools import pairwise

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext, pgettext_lazy

MONTHS = (
    pgettext_lazy("month of a schedule", "January"),
    pgettext_lazy("month of a schedule", "February"),
    pgettext_lazy("month of a schedule", "March"),
    pgettext_lazy("month of a schedule", "April"),
    pgettext_lazy("month of a schedule", "May"),
    pgettext_lazy("month of a schedule", "June"),
    pgettext_lazy("month of a schedule", "July"),
    pgettext_lazy("month of a schedule", "August"),
    pgettext_lazy("month of a schedule", "September"),
    pgettext_lazy("month of a schedule", "October"),
    pgettext_lazy("month of a schedule", "November"),
    pgettext_lazy("month of a schedule", "December"),
)
# From Sunday on, as cron counts. One alone, as in "every Monday"; as the end of a range, as in "Monday to Friday".
ALONE = (
    pgettext_lazy("weekday alone", "Sunday"),
    pgettext_lazy("weekday alone", "Monday"),
    pgettext_lazy("weekday alone", "Tuesday"),
    pgettext_lazy("weekday alone", "Wednesday"),
    pgettext_lazy("weekday alone", "Thursday"),
    pgettext_lazy("weekday alone", "Friday"),
    pgettext_lazy("weekday alone", "Saturday"),
)
IN_RANGE = (
    pgettext_lazy("weekday in a range", "Sunday"),
    pgettext_lazy("weekday in a range", "Monday"),
    pgettext_lazy("weekday in a range", "Tuesday"),
    pgettext_lazy("weekday in a range", "Wednesday"),
    pgettext_lazy("weekday in a range", "Thursday"),
    pgettext_lazy("weekday in a range", "Friday"),
    pgettext_lazy("weekday in a range", "Saturday"),
)
# The first of several, with its preposition, and the others: "on Mondays, Wednesdays and Fridays".
FIRST_OF_SEVERAL = (
    pgettext_lazy("first of several weekdays", "on Sundays"),
    pgettext_lazy("first of several weekdays", "on Mondays"),
    pgettext_lazy("first of several weekdays", "on Tuesdays"),
    pgettext_lazy("first of several weekdays", "on Wednesdays"),
    pgettext_lazy("first of several weekdays", "on Thursdays"),
    pgettext_lazy("first of several weekdays", "on Fridays"),
    pgettext_lazy("first of several weekdays", "on Saturdays"),
)
OF_SEVERAL = (
    pgettext_lazy("one of several weekdays", "Sundays"),
    pgettext_lazy("one of several weekdays", "Mondays"),
    pgettext_lazy("one of several weekdays", "Tuesdays"),
    pgettext_lazy("one of several weekdays", "Wednesdays"),
    pgettext_lazy("one of several weekdays", "Thursdays"),
    pgettext_lazy("one of several weekdays", "Fridays"),
    pgettext_lazy("one of several weekdays", "Saturdays"),
)
SHORTEST_RANGE = 3  # values
SHORTEST_STEPS = 5


def listed(parts: Sequence[str | Promise]) -> str:
    """Such as "a", "a and b", "a, b and c"."""
    *most, last = (str(part) for part in parts)
    if not most:
        return last
    return pgettext("list", "%(most)s and %(last)s") % {"most": ", ".join(most), "last": last}


def ranges(values: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted values as ranges of neighbours, each with its first and last."""
    found: list[tuple[int, int]] = []
    for value in values:
        if found and value == found[-1][1] + 1:
            found[-1] = found[-1][0], value
        else:
            found.append((value, value))
    return found


def numbers(values: Sequence[int]) -> str:
    """Sorted numbers for people: "0, 15 and 30", "8 to 18", "0 to 58 in steps of 2"."""
    step = steps(values)
    if step > 1 and len(values) >= SHORTEST_STEPS:
        given = {"first": values[0], "last": values[-1], "step": step}
        return _("%(first)d to %(last)d in steps of %(step)d") % given
    parts: list[str] = []
    for first, last in ranges(values):
        if last - first + 1 >= SHORTEST_RANGE:
            parts.append(pgettext("numbers", "%(first)d to %(last)d") % {"first": first, "last": last})
        else:
            parts += map(str, range(first, last + 1))
    return listed(parts)


def steps(values: Sequence[int]) -> int:
    """How far sorted values are apart, where that is the same for all; else 0."""
    gaps = {right - left for left, right in pairwise(values)}
    return gaps.pop() if len(gaps) == 1 else 0


def clock(second: int, *, seconds: bool) -> str:
    """A second of the day as 07:30 or 07:30:00."""
    text = f"{second // 3600:02}:{second // 60 % 60:02}"
    return f"{text}:{second % 60:02}" if seconds else text


def between(first: int, last: int, *, seconds: bool) -> str:
    """Such as "from 08:00 to 18:00", of two seconds of the day."""
    since = ngettext("from %(time)s", "from %(time)s", _grammatical(first)) % {"time": clock(first, seconds=seconds)}
    until = ngettext("to %(time)s", "to %(time)s", _grammatical(last)) % {"time": clock(last, seconds=seconds)}
    return f"{since} {until}"


def at(second: int, *, seconds: bool, daily: bool) -> str:
    """Such as "At 07:30", or "Every day at 07:30"."""
    number = _grammatical(second)
    text = (
        ngettext("Every day at %(time)s", "Every day at %(time)s", number)
        if daily
        else ngettext("At %(time)s", "At %(time)s", number)
    )
    return text % {"time": clock(second, seconds=seconds)}


def _grammatical(second: int) -> int:
    """One o'clock is singular in Portuguese ("à 01:00", "às 02:00"): the number for ngettext."""
    return 1 if second // 3600 == 1 else 2
