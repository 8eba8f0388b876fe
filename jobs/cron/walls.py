"""The wall-clock times of an expression, in a calendar without time zones: croniter counts, the odd days are ours.

croniter knows neither `LW`, nor lists with `15W`, nor a weekday beside `5#2`, nor "either of day and weekday" with
such: there the days are found by our own rule, and croniter is asked for the times of each.
"""

from copy import copy as twin  # (called by its own name it would look like a COPY of SQL to the test of that)
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from croniter import CroniterError, croniter

from jobs.cron import days
from jobs.cron.fields import Expression, Field

HORIZON = 50  # years without a time: it never comes (29 February on a given weekday: 40 at most)
SECOND = timedelta(seconds=1)
# The calendar ends here, well within what Python can count.
FIRST_YEAR, LAST_YEAR = 1900, 9900
EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall-clock time: it has no zone


def _text(field: Field) -> str:
    return "*" if field.whole else ",".join(map(str, sorted(field.values)))


@lru_cache(maxsize=2000)
def _counter(expression: Expression) -> tuple[croniter, bool]:
    """croniter for an expression, to be copied and not used; whether the days are for us to find."""
    either = expression.either
    ours = expression.day.special or expression.weekday.special or (either and expression.every_day)
    by_day = ("*", "*") if ours else (_text(expression.day), _text(expression.weekday))
    month = "*" if ours else _text(expression.month)
    times = [_text(field) for field in (expression.second, expression.minute, expression.hour)]
    text = " ".join([*times, by_day[0], month, by_day[1]])
    options = {"second_at_beginning": True, "day_or": either, "max_years_between_matches": HORIZON}
    return croniter(text, EPOCH, **options), ours


def following(expression: Expression, after: datetime) -> datetime | None:
    """The first wall-clock time after `after` (naive); None when there is none within HORIZON years."""
    return _walk(expression, after, 1)


def latest(expression: Expression, until: datetime) -> datetime | None:
    """The last wall-clock time that is not after `until` (naive); None when there is none within HORIZON years."""
    return _walk(expression, until + SECOND, -1)


def count(expression: Expression, first: datetime, end: datetime) -> int:
    """How many wall-clock times there are from `first` on and before `end` (naive). Its cost grows with the days."""
    if first >= end:
        return 0
    found = 0
    whole = len(expression.hour.values) * len(expression.minute.values) * len(expression.second.values)
    start = first.date()
    while (when := days.find(expression, start, end.date())) is not None:
        before = _earlier(expression, first.time()) if when == first.date() else 0
        found += (_earlier(expression, end.time()) if when == end.date() else whole) - before
        start = when + days.DAY
    return found


def _earlier(expression: Expression, when: time) -> int:
    """How many of a day's times are before this one."""
    seconds, minutes, hours = expression.second.values, expression.minute.values, expression.hour.values
    found = sum(hour < when.hour for hour in hours) * len(minutes) * len(seconds)
    if when.hour in hours:
        found += sum(minute < when.minute for minute in minutes) * len(seconds)
        if when.minute in minutes:
            found += sum(second < when.second for second in seconds)
    return found


def _walk(expression: Expression, start: datetime, way: int) -> datetime | None:
    try:
        shared, ours = _counter(expression)
    except CroniterError:  # it sees by itself that this never comes
        return None
    counter = twin(shared)  # its position is its own, what it knows of the expression is only read
    if not ours:
        return _step(counter, start, way)
    end = date(start.year + way * HORIZON, 1, 1)
    find = days.find if way > 0 else days.find_back
    day = start.date()
    while (when := find(expression, day, end)) is not None:
        if when != start.date():
            start = datetime.combine(when, time()) - SECOND if way > 0 else datetime.combine(when + days.DAY, time())
        wall = _step(counter, start, way)
        if wall is None or wall.date() == when:
            return wall
        day = when + way * days.DAY
    return None


def _step(counter: croniter, start: datetime, way: int) -> datetime | None:
    try:
        wall: datetime = (counter.get_next if way > 0 else counter.get_prev)(datetime, start_time=start)
    except (CroniterError, OverflowError, ValueError):
        return None
    return wall if abs(wall.year - start.year) <= HORIZON else None
