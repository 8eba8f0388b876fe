"""Instants that were missed, those that are years away, and what asking costs."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobs.cron import BadCron, parse, walls

NOW = datetime(2026, 10, 14, 17, 32, 7, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.fixture
def asked(monkeypatch):
    """The wall-clock times that were looked for."""
    found = []
    step = walls._step

    def counted(counter, start, way):
        found.append(start)
        return step(counter, start, way)

    monkeypatch.setattr(walls, "_step", counted)
    return found


def test_after_a_month_away_only_the_last_ones_are_counted_back(asked):
    schedule = parse("* * * * * *", "America/Sao_Paulo")
    asked.clear()

    missed = schedule.missed(NOW - 30 * DAY, NOW, 100)

    assert missed == [NOW - SECOND * back for back in range(99, -1, -1)]
    assert len(asked) == 100


def test_the_latest_one_missed_is_found_by_one_look(asked):
    schedule = parse("*/15 * * * * *", "Asia/Kolkata")
    asked.clear()

    assert schedule.missed(NOW - 365 * DAY, NOW, 1) == [NOW - 7 * SECOND]
    assert len(asked) == 1


def test_all_that_came_within_a_minute_away_are_missed_once_each():
    schedule = parse("*/15 * * * * *", "UTC")
    stopped = datetime(2026, 10, 14, 12, 0, 0, tzinfo=UTC)

    missed = schedule.missed(stopped, stopped + timedelta(seconds=61), 100)

    assert missed == [stopped + timedelta(seconds=seconds) for seconds in (15, 30, 45, 60)]


@pytest.mark.parametrize("limit", [0, -1])
def test_none_are_missed_where_none_are_asked_for(limit):
    schedule = parse("* * * * *", "UTC")

    assert schedule.missed(NOW - DAY, NOW, limit) == []
    assert schedule.upcoming(NOW, limit) == []


def test_time_that_went_backwards_missed_nothing():
    schedule = parse("* * * * *", "UTC")

    assert schedule.missed(NOW, NOW - DAY, 10) == []
    assert schedule.count(NOW, NOW - DAY) == 0
    assert schedule.missed(NOW, NOW, 10) == []


@pytest.mark.parametrize("expression", ["0 0 29 2 */7", "0 0 29 2 SUN#5", "0 12 29 2 ?"])
def test_a_leap_day_is_found_however_far_it_is(expression):
    schedule = parse(expression, "UTC")
    instant = datetime(2088, 3, 1, tzinfo=UTC)  # the leap year after 2096 is 2104

    found = schedule.next(instant)

    assert (found.month, found.day) == (2, 29)
    assert schedule.missed(instant, found + SECOND, 5) == [found]


def test_a_time_that_is_in_the_gap_of_each_year_does_not_come():
    schedule = parse("*/30 2 * 3 SUN#2", "America/New_York")

    with pytest.raises(BadCron, match="50 years"):
        schedule.next(NOW)
    assert schedule.missed(NOW - 3650 * DAY, NOW, 5) == []
    assert schedule.upcoming(NOW, 5) == []


def test_summer_time_is_still_known_in_forty_years():
    schedule = parse("30 7 * * *", "Europe/Lisbon")

    summer, winter = (schedule.next(datetime(2066, month, 1, tzinfo=UTC)) for month in (7, 12))

    assert (summer.hour, winter.hour) == (6, 7)


def test_it_does_not_matter_in_which_zone_an_instant_is_given():
    schedule = parse("0 9 * * *", "Europe/Lisbon")

    found = schedule.next(NOW.astimezone(timezone(timedelta(hours=-11))))

    assert found == schedule.next(NOW)
    assert found.tzinfo is UTC


def test_the_instants_between_two_fractions_of_a_second():
    schedule = parse("* * * * * *", "UTC")
    half = timedelta(microseconds=500_000)

    assert schedule.next(NOW - half) == NOW
    assert schedule.next(NOW) == NOW + SECOND
    assert schedule.missed(NOW - half, NOW + half, 5) == [NOW]
    assert schedule.count(NOW - half, NOW + half) == 1


@pytest.mark.parametrize(("expression", "day"), [("0 */5 * * * *", 288), ("* * * * * *", 86_400), ("0 0 3 * * *", 1)])
def test_how_many_come_within_a_day_is_counted_without_a_walk(expression, day, asked):
    schedule = parse(expression, "America/Sao_Paulo")
    asked.clear()

    assert schedule.count(NOW, NOW + DAY) == day
    assert asked == []


def test_the_days_of_the_clocks_changes_have_as_many_hours_as_they_have():
    hourly = parse("@hourly", "America/New_York")
    forward, back = datetime(2025, 3, 9, 5, tzinfo=UTC), datetime(2025, 11, 2, 4, tzinfo=UTC)

    assert hourly.count(forward, datetime(2025, 3, 10, 4, tzinfo=UTC)) == 23
    assert hourly.count(back, datetime(2025, 11, 3, 5, tzinfo=UTC)) == 25


def test_fixed_times_of_a_gap_and_of_its_end_are_one():
    schedule = parse("0,30 2,3 * * *", "America/New_York")
    night, morning = datetime(2025, 3, 9, 5, tzinfo=UTC), datetime(2025, 3, 9, 12, tzinfo=UTC)
    once = [datetime(2025, 3, 9, 7, 0, tzinfo=UTC), datetime(2025, 3, 9, 7, 30, tzinfo=UTC)]

    assert schedule.upcoming(night, 2) == once
    assert schedule.missed(night, morning, 10) == once
    assert schedule.count(night, morning) == 2


@pytest.mark.parametrize(("expression", "again"), [("0,30 1 * * *", 0), ("*/30 1 * * *", 2)])
def test_asked_while_the_clock_repeats_itself_only_intervals_run_again(expression, again):
    schedule = parse(expression, "America/New_York")
    repeated, over = datetime(2025, 11, 2, 6, tzinfo=UTC), datetime(2025, 11, 2, 7, tzinfo=UTC)

    assert len([instant for instant in schedule.upcoming(repeated - SECOND, 5) if instant < over]) == again
    assert len(schedule.missed(repeated - SECOND, over, 5)) == again
    assert schedule.count(repeated - SECOND, over) == again


def test_what_was_read_once_is_kept():
    assert parse("0 9 * * *", "Europe/Lisbon") is parse("0 9 * * *", "Europe/Lisbon")
