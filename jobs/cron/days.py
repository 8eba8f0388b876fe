"""Which days of the calendar suit an expression."""

from calendar import monthrange
from datetime import date, timedelta

from jobs.cron.fields import Expression, Field

DAY = timedelta(days=1)
SATURDAY, SUNDAY = 5, 6


def suits(expression: Expression, when: date) -> bool:
    """Whether day, month and weekday let it run on this date."""
    if when.month not in expression.month.values:
        return False
    day, weekday = expression.day, expression.weekday
    if expression.either:
        return _day_of_week(weekday, when) or _day_of_month(day, when)
    return _day_of_week(weekday, when) and _day_of_month(day, when)


def find(expression: Expression, start: date, end: date) -> date | None:
    """The first date from `start` on that suits, up to and with `end`; None when none does."""
    while start <= end:
        if start.month not in expression.month.values:
            start = start.replace(day=monthrange(start.year, start.month)[1])
        elif suits(expression, start):
            return start
        start += DAY
    return None


def find_back(expression: Expression, start: date, end: date) -> date | None:
    """The last date up to `start` that suits, down to and with `end`; None when none does."""
    while start >= end:
        if start.month not in expression.month.values:
            start = start.replace(day=1)
        elif suits(expression, start):
            return start
        start -= DAY
    return None


def _day_of_month(day: Field, when: date) -> bool:
    if when.day in day.values:
        return True
    if not day.special:
        return False
    length = monthrange(when.year, when.month)[1]
    return (
        (day.last and when.day == length)
        or (day.last_weekday and when.day == _nearest(when, length))
        or any(when.day == _nearest(when, min(wanted, length)) for wanted in day.nearest)
    )


def _nearest(when: date, wanted: int) -> int:
    """The day from Monday to Friday that is nearest to the wanted one, in the same month."""
    length, number = monthrange(when.year, when.month)[1], when.replace(day=wanted).weekday()
    if number == SATURDAY:
        return wanted - 1 if wanted > 1 else wanted + 2
    if number == SUNDAY:
        return wanted + 1 if wanted < length else wanted - 2
    return wanted


def _day_of_week(weekday: Field, when: date) -> bool:
    number = when.isoweekday() % 7
    if number in weekday.values:
        return True
    if not weekday.nth:
        return False
    last = monthrange(when.year, when.month)[1] - when.day < 7
    return (number, (when.day + 6) // 7) in weekday.nth or (last and (number, 0) in weekday.nth)
