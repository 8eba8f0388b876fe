"""Against a walk over every second of a time around the days when clocks are put forward or back."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.cron import BadCron, parse
from tests.cron.drawn import drawings, nightly_drawings

SECOND = timedelta(seconds=1)
HOURS_LONG = 5
# Zone and the beginning of the walk.
WALKS = {
    "New York goes forward": ("America/New_York", datetime(2025, 3, 9, 5, tzinfo=UTC)),
    "New York goes back": ("America/New_York", datetime(2025, 11, 2, 4, tzinfo=UTC)),
    "Lisbon goes forward": ("Europe/Lisbon", datetime(2025, 3, 29, 23, tzinfo=UTC)),
    "Lisbon goes back": ("Europe/Lisbon", datetime(2025, 10, 25, 22, tzinfo=UTC)),
    "São Paulo goes forward at midnight": ("America/Sao_Paulo", datetime(2018, 11, 4, 0, tzinfo=UTC)),
    "São Paulo goes back at midnight": ("America/Sao_Paulo", datetime(2018, 2, 17, 23, tzinfo=UTC)),
    "Lord Howe goes forward by half an hour": ("Australia/Lord_Howe", datetime(2025, 10, 4, 13, tzinfo=UTC)),
    "Lord Howe goes back by half an hour": ("Australia/Lord_Howe", datetime(2025, 4, 5, 12, tzinfo=UTC)),
    "Casablanca goes back for Ramadan": ("Africa/Casablanca", datetime(2025, 2, 22, 23, tzinfo=UTC)),
    "Kolkata does nothing": ("Asia/Kolkata", datetime(2025, 2, 28, 15, tzinfo=UTC)),
    "Apia leaves out a day": ("Pacific/Apia", datetime(2011, 12, 30, 8, tzinfo=UTC)),
}


@dataclass(frozen=True)
class Tick:
    """A second: what the clock shows, whether it showed it before, and what it left out right before."""

    instant: datetime
    wall: datetime
    again: bool
    left_out: tuple[datetime, ...]


@cache
def ticks(name):
    """Every second of a walk after its first; an offset that grew is a gap."""
    zone, instant = WALKS[name]
    where = ZoneInfo(zone)
    before = instant.astimezone(where).utcoffset()
    found = []
    for _ in range(HOURS_LONG * 3600):
        instant += SECOND
        local = instant.astimezone(where)
        wall, gap = local.replace(tzinfo=None, fold=0), int((local.utcoffset() - before).total_seconds())
        left_out = tuple(wall - SECOND * back for back in range(gap, 0, -1))
        found.append(Tick(instant, wall, local.fold == 1, left_out))
        before = local.utcoffset()
    return found


def walk(drawing, name):
    """The instants at which it runs, second by second."""
    hours, minutes, seconds = drawing.times()
    days: dict[date, bool] = {}

    def matches(wall):
        if wall.second not in seconds or wall.minute not in minutes or wall.hour not in hours:
            return False
        day = wall.date()
        if day not in days:
            days[day] = drawing.on(day)
        return days[day]

    if drawing.interval:
        return [tick.instant for tick in ticks(name) if matches(tick.wall)]
    return [
        tick.instant
        for tick in ticks(name)
        if (not tick.again and matches(tick.wall)) or any(map(matches, tick.left_out))
    ]


def upcoming(schedule, after, end, few):
    """The next few up to `end`, one by one."""
    found = []
    while len(found) < few:
        after = schedule.next(after)
        if after > end:
            break
        found.append(after)
    return found


@pytest.mark.parametrize("name", WALKS)
@settings(max_examples=20)
@given(drawing=nightly_drawings(), asked=st.integers(0, HOURS_LONG * 3600 - 2), few=st.integers(1, 15))
def test_what_runs_is_what_a_walk_over_every_second_finds(name, drawing, asked, few):
    try:
        schedule = parse(drawing.text, WALKS[name][0])
    except BadCron as refused:
        assume("never" not in refused.reason)
        raise
    expected = walk(drawing, name)
    start, end = ticks(name)[0].instant - SECOND, ticks(name)[-1].instant

    assert upcoming(schedule, start, end, few) == expected[:few]
    assert schedule.missed(start, end, few) == expected[-few:]
    assert schedule.count(start, end) == len(expected)
    # Asked anywhere, and where it matters: around the change of the clocks, and at an instant of its own.
    change = next((number for number, tick in enumerate(ticks(name)) if tick.again or tick.left_out), asked)
    for middle in [
        ticks(name)[asked].instant + timedelta(microseconds=500_000),
        ticks(name)[change].instant - SECOND,
        ticks(name)[change].instant,
        min(ticks(name)[change].instant + timedelta(seconds=asked % 3600), end),
        *expected[asked % 7 : asked % 7 + 1],
    ]:
        early = [instant for instant in expected if instant <= middle]
        late = expected[len(early) :]

        assert upcoming(schedule, middle, end, few) == late[:few]
        assert schedule.missed(start, middle, few) == early[-few:]
        assert schedule.missed(middle, end, few) == late[-few:]
        assert schedule.count(start, middle) == len(early)
        assert schedule.count(middle, end) == len(late)


@settings(max_examples=80)
@given(drawing=drawings(), start=st.dates(date(1999, 1, 1), date(2040, 1, 1)), few=st.integers(1, 15))
def test_the_days_are_those_that_a_walk_over_the_calendar_finds(drawing, start, few):
    text = f"0 12 {drawing.day.text} {drawing.month.text} {drawing.weekday.text}"
    try:
        schedule = parse(text, "UTC")
    except BadCron:
        years = (date(2000, 1, 1) + timedelta(days=number) for number in range(28 * 366))
        assert not any(map(drawing.on, years))
        return
    first = datetime(start.year, start.month, start.day, 12, tzinfo=UTC)
    walked = (first + timedelta(days=number) for number in range(1, 1200))
    expected = [instant for instant in walked if drawing.on(instant.date())]
    end = first + timedelta(days=1199)

    assert upcoming(schedule, first, end, few) == expected[:few]
    assert schedule.missed(first, end, few) == expected[-few:]
    assert schedule.count(first, end) == len(expected)
