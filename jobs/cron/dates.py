"""The days in words: "Monday to Friday", "on day 1 of each month", "on the last Friday of each month"."""

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from jobs.cron.fields import Expression, Field
from jobs.cron.phrases import (
    ALONE,
    FIRST_OF_SEVERAL,
    IN_RANGE,
    MONTHS,
    OF_SEVERAL,
    SHORTEST_RANGE,
    listed,
    numbers,
    ranges,
    steps,
)

WEEKEND = (0, 6)
SHORTEST_STEPS = 4  # days that are called "every 2 days"
LONGEST_MONTH = 31


def spoken(expression: Expression) -> list[str]:
    """On which days it runs, as the parts of a sentence after its times; none where it runs on every day."""
    day, weekday, months = expression.day, expression.weekday, sorted(expression.month.values)
    by_day = not expression.every_day and not day.whole
    by_weekday = not expression.every_day and not weekday.whole
    within_months = by_day or (by_weekday and bool(weekday.nth))
    # "on day 1 of January and July" where that is all; else the months follow: "…, only from April to September".
    alone = within_months and not (by_day and by_weekday) and not (by_weekday and weekday.values)
    brief = all(last - first + 1 < SHORTEST_RANGE for first, last in ranges(months))
    named = months if alone and brief else []
    parts = []
    if by_day and by_weekday:
        both = {"days": _of_months(_days(day), named), "weekdays": _weekday(weekday, named)}
        if expression.either:
            parts.append(_("%(days)s or %(weekdays)s") % both)
        else:
            parts.append(_("%(days)s and %(weekdays)s, when both coincide") % both)
    elif by_day:
        parts.append(_of_months(_days(day), named))
    elif by_weekday:
        parts.append(_weekday(weekday, named))
    if not expression.month.whole and not named:
        parts.append(_in_months(months, only=within_months))
    return parts


def _days(day: Field) -> list[str]:
    """Days of the month, each kind with its preposition."""
    parts = []
    values = sorted(day.values)
    step = steps(values)
    if step > 1 and len(values) >= SHORTEST_STEPS and values[-1] + step > LONGEST_MONTH:
        parts.append(_("every %(step)d days from day %(first)d") % {"step": step, "first": values[0]})
    elif values:
        parts.append(ngettext("on day %(days)s", "on days %(days)s", len(values)) % {"days": numbers(values)})
    for number in sorted(day.nearest):
        parts.append(_("on the weekday (Monday to Friday) nearest to day %(day)d") % {"day": number})
    if day.last:
        parts.append(_("on the last day"))
    if day.last_weekday:
        parts.append(_("on the last weekday (Monday to Friday)"))
    return parts


def _weekday(weekday: Field, months: Sequence[int]) -> str:
    """Weekdays: those of every week, then those that count within the month."""
    parts = [_weekdays(weekday.values)] if weekday.values else []
    nth = sorted(weekday.nth, key=lambda each: (each[1] or 9, _from_monday(each[0])))
    if nth:
        parts.append(_of_months([_which(place, number) for number, place in nth], months))
    return listed(parts)


def _weekdays(values: frozenset[int]) -> str:
    if len(values) == 1:
        return _every(*values)
    begin = [number for number in values if (number - 1) % 7 not in values]
    if len(values) >= SHORTEST_RANGE and len(begin) == 1:
        last = (begin[0] + len(values) - 1) % 7
        return pgettext("weekdays", "%(first)s to %(last)s") % {"first": IN_RANGE[begin[0]], "last": IN_RANGE[last]}
    first, *others = sorted(values, key=_from_monday)
    return listed([FIRST_OF_SEVERAL[first], *(OF_SEVERAL[number] for number in others)])


def _from_monday(number: int) -> int:
    return (number - 1) % 7


def _every(number: int) -> str:
    """Such as "every Monday"; two messages, since the days of the weekend have another gender in Portuguese."""
    if number in WEEKEND:
        text = pgettext("Saturday or Sunday", "every %(weekday)s")
    else:
        text = pgettext("Monday to Friday", "every %(weekday)s")
    return text % {"weekday": ALONE[number]}


def _which(place: int, number: int) -> str:
    """Such as "on the first Monday"; place 0 is the last."""
    if number in WEEKEND:
        texts = (
            pgettext("Saturday or Sunday", "on the last %(weekday)s"),
            pgettext("Saturday or Sunday", "on the first %(weekday)s"),
            pgettext("Saturday or Sunday", "on the second %(weekday)s"),
            pgettext("Saturday or Sunday", "on the third %(weekday)s"),
            pgettext("Saturday or Sunday", "on the fourth %(weekday)s"),
            pgettext("Saturday or Sunday", "on the fifth %(weekday)s"),
        )
    else:
        texts = (
            pgettext("Monday to Friday", "on the last %(weekday)s"),
            pgettext("Monday to Friday", "on the first %(weekday)s"),
            pgettext("Monday to Friday", "on the second %(weekday)s"),
            pgettext("Monday to Friday", "on the third %(weekday)s"),
            pgettext("Monday to Friday", "on the fourth %(weekday)s"),
            pgettext("Monday to Friday", "on the fifth %(weekday)s"),
        )
    return texts[place] % {"weekday": ALONE[number]}


def _of_months(days: Sequence[str], months: Sequence[int]) -> str:
    """Days that count within the month, of each one or of these."""
    if not months:
        return _("%(days)s of each month") % {"days": listed(days)}
    return _("%(days)s of %(months)s") % {"days": listed(days), "months": listed([MONTHS[n - 1] for n in months])}


def _in_months(months: Sequence[int], *, only: bool) -> str:
    [(first, last), *more] = ranges(months)
    if not more and last - first + 1 >= SHORTEST_RANGE:
        text = _("only from %(first)s to %(last)s") if only else pgettext("months", "from %(first)s to %(last)s")
        return text % {"first": MONTHS[first - 1], "last": MONTHS[last - 1]}
    text = _("only in %(months)s") if only else _("in %(months)s")
    return text % {"months": listed([MONTHS[number - 1] for number in months])}
