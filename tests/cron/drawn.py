"""Cron fields drawn at random, each with its meaning told a second time: by what it says of one value or one date."""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from hypothesis import strategies as st

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MARKS = "*/-"


@dataclass(frozen=True)
class Drawn:
    """A field's text, and whether a value (of days and weekdays: a date) is one of its own."""

    text: str
    has: Callable[..., bool]

    @property
    def starred(self) -> bool:
        return self.text[0] in "*?"


@st.composite
def parts(draw, least, most, names=(), early=None):
    """One part of a list: all, a value, a range that may go over the end, each with or without a step.

    No value that is written is above `early`.
    """
    span = most - least + 1
    values, steps = st.integers(least, most if early is None else early), st.integers(1, span)

    def written(value):
        return draw(st.sampled_from([str(value), names[value - least].title()])) if names else str(value)

    form = draw(st.sampled_from(["all", "all by", "one", "one", "one by", "range", "range", "range by"]))
    first, last, step = draw(values), draw(values), draw(steps)
    if form == "all":
        return Drawn("*", lambda value: True)
    if form == "all by":
        return Drawn(f"*/{step}", lambda value: (value - least) % step == 0)
    if form == "one":
        return Drawn(written(first), lambda value: value == first)
    if form == "one by":
        return Drawn(f"{first}/{step}", lambda value: value >= first and (value - first) % step == 0)
    step = step if form == "range by" else 1

    def within(value):
        way = (value - first) % span
        return way <= (last - first) % span and way % step == 0

    return Drawn(f"{written(first)}-{written(last)}" + (f"/{step}" if step > 1 else ""), within)


def any_of(parts):
    return Drawn(",".join(part.text for part in parts), lambda value: any(part.has(value) for part in parts))


def field(least, most, names=(), early=None):
    """A field of one to three parts."""
    return st.lists(parts(least, most, names, early), min_size=1, max_size=3).map(any_of)


def one_or_two(least, most):
    """Fixed values, the least of them often."""
    value = st.one_of(st.just(least), st.integers(least, most))
    return st.lists(value.map(lambda one: Drawn(str(one), lambda other: other == one)), min_size=1, max_size=2).map(
        any_of
    )


SECONDS = st.one_of(st.just(Drawn("0", lambda value: value == 0)), field(0, 59))
MINUTES = field(0, 59)
HOURS = field(0, 23)
EARLY = st.one_of(HOURS, field(0, 23, early=3))
MONTHS_OF_YEAR = st.one_of(st.just(Drawn("*", lambda month: True)), field(1, 12, MONTHS))


def month_of(day):
    """The dates of the month that this one is in."""
    return [day.replace(day=number) for number in range(1, monthrange(day.year, day.month)[1] + 1)]


def nearest(day, wanted):
    """The working day nearest to the wanted day of this date's month."""
    month = month_of(day)
    working = [each.day for each in month if each.weekday() < 5]
    return min(working, key=lambda number: abs(number - min(wanted, len(month))))


def of_month(text):
    """L, LW and 15W."""
    if text == "L":
        return Drawn(text, lambda day: day == month_of(day)[-1])
    if text == "LW":
        return Drawn(text, lambda day: day == [each for each in month_of(day) if each.weekday() < 5][-1])
    return Drawn(text, lambda day: day.day == nearest(day, int(text[:-1])))


def of_weekday(weekday, which):
    """5#2 and 5L: every such weekday of the month is listed, and one is taken."""

    def has(day):
        such = [each for each in month_of(day) if each.isoweekday() % 7 == weekday % 7]
        return day == such[-1] if which == "L" else which <= len(such) and day == such[which - 1]

    return Drawn(f"{weekday}L" if which == "L" else f"{weekday}#{which}", has)


def by_date(drawn, value):
    """A field of numbers as one of dates."""
    return Drawn(drawn.text, lambda day: drawn.has(value(day)))


def weekday_of(day):
    return day.isoweekday() % 7


ANY = Drawn("*", lambda day: True)
NO_OPINION = Drawn("?", lambda day: True)
_days = parts(1, 31).map(lambda drawn: by_date(drawn, lambda day: day.day))
_of_month = st.one_of(st.sampled_from(["L", "LW"]), st.integers(1, 31).map(lambda number: f"{number}W")).map(of_month)
_weekdays = st.one_of(parts(0, 6, WEEKDAYS), st.just(Drawn("7", lambda number: number == 0))).map(
    lambda drawn: by_date(drawn, weekday_of)
)
_of_weekday = st.builds(of_weekday, st.integers(0, 7), st.sampled_from([1, 2, 3, 4, 5, "L"]))
DAYS = st.one_of(
    st.just(ANY), st.just(NO_OPINION), st.lists(st.one_of(_days, _of_month), min_size=1, max_size=3).map(any_of)
)
DAYS_OF_WEEK = st.one_of(
    st.just(ANY), st.just(NO_OPINION), st.lists(st.one_of(_weekdays, _of_weekday), min_size=1, max_size=3).map(any_of)
)


@dataclass(frozen=True)
class Drawing:
    """Six fields; what they say of a wall-clock time."""

    second: Drawn
    minute: Drawn
    hour: Drawn
    day: Drawn
    month: Drawn
    weekday: Drawn

    @property
    def text(self) -> str:
        fields = (self.second, self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(each.text for each in fields)

    @property
    def interval(self) -> bool:
        return any(mark in each.text for each in (self.second, self.minute, self.hour) for mark in MARKS)

    def on(self, day: date) -> bool:
        """Whether it runs on this date; where neither field is starred one of them is enough."""
        if not self.month.has(day.month):
            return False
        if self.day.starred or self.weekday.starred:
            return self.day.has(day) and self.weekday.has(day)
        return self.day.has(day) or self.weekday.has(day)

    def times(self) -> tuple[set[int], set[int], set[int]]:
        """Its hours, minutes and seconds."""
        return (
            {hour for hour in range(24) if self.hour.has(hour)},
            {minute for minute in range(60) if self.minute.has(minute)},
            {second for second in range(60) if self.second.has(second)},
        )


def drawings():
    """Expressions of six fields."""
    return st.builds(Drawing, SECONDS, MINUTES, HOURS, DAYS, MONTHS_OF_YEAR, DAYS_OF_WEEK)


def nightly_drawings():
    """Those that run in most nights: half of them at fixed times."""
    days, weekdays = st.one_of(st.just(ANY), DAYS), st.one_of(st.just(ANY), DAYS_OF_WEEK)
    fixed = st.builds(Drawing, one_or_two(0, 59), one_or_two(0, 59), one_or_two(0, 3), days, st.just(ANY), weekdays)
    return st.one_of(fixed, st.builds(Drawing, SECONDS, MINUTES, EARLY, days, st.just(ANY), weekdays))
