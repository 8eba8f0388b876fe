"""What is refused, and that nothing that anybody writes does anything else than be refused or run."""

import errno
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobs.cron import BadCron, describe, parse, zone, zone_names, zones
from jobs.cron.fields import LONGEST
from jobs.errors import Invalid

NOW = datetime(2026, 10, 14, 17, 32, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "part", "reason"),
    [
        ("*/0 * * * *", "minute", "Expected a step from 1 to 60; got “0”."),
        ("*/00 * * * *", "minute", "Expected a step from 1 to 60; got “00”."),
        ("0 */25 * * *", "hour", "Expected a step from 1 to 24; got “25”."),
        ("*/-1 * * * *", "minute", "Expected a step from 1 to 60; got “-1”."),
        ("5/ * * * *", "minute", "Expected a step from 1 to 60; got “”."),
        ("5//2 * * * *", "minute", "Expected a step from 1 to 60; got “/2”."),
        ("60 * * * *", "minute", "Expected 0 to 59; got “60”."),
        ("60 * * * * *", "second", "Expected 0 to 59; got “60”."),
        ("0 24 * * *", "hour", "Expected 0 to 23; got “24”."),
        ("0 0 0 * *", "day", "Expected 1 to 31; got “0”."),
        ("0 0 32W * *", "day", "Expected 1 to 31; got “32”."),
        ("0 0 L-3 * *", "day", "Expected 1 to 31; got “L”."),
        ("0 0 * 13 *", "month", "Expected 1 to 12 or JAN to DEC; got “13”."),
        ("0 0 * 0 *", "month", "Expected 1 to 12 or JAN to DEC; got “0”."),
        ("0 0 * janeiro *", "month", "Expected 1 to 12 or JAN to DEC; got “JANEIRO”."),
        ("0 0 * * 8", "weekday", "Expected 0 to 7 or SUN to SAT; got “8”."),
        ("0 0 * * L", "weekday", "Expected 0 to 7 or SUN to SAT; got “L”."),
        ("0 0 * * seg", "weekday", "Expected 0 to 7 or SUN to SAT; got “SEG”."),
        ("0 0 * * 5#6", "weekday", "Expected #1 to #5; got “#6”."),
        ("0 0 * * 5#0", "weekday", "Expected #1 to #5; got “#0”."),
        ("0 0 * * 9#1", "weekday", "Expected 0 to 7 or SUN to SAT; got “9”."),
        ("0 0 * * 8L", "weekday", "Expected 0 to 7 or SUN to SAT; got “8”."),
        ("0 0 1,,2 * *", "day", "A part of it is empty."),
        (", * * * *", "minute", "A part of it is empty."),
        ("1- * * * *", "minute", "Expected 0 to 59; got “”."),
        ("1-2-3 * * * *", "minute", "Expected 0 to 59; got “2-3”."),
        ("? * * * *", "minute", "? is for the day and the weekday only."),
        ("0 0 ?,5 * *", "day", "? stands alone."),
        ("0 0 * * ?/2", "weekday", "? stands alone."),
        ("* * 99999999999999999999999999 * *", "day", "Expected 1 to 31; got “99999999999999999999”."),
        ("* * * *", "", "Expected 5 fields, or 6 with seconds first; got 4."),
        ("* * * * * * *", "", "Expected 5 fields, or 6 with seconds first; got 7."),
        ("@reboot", "", "Expected one of: @annually, @daily, @hourly, @midnight, @monthly, @weekly, @yearly."),
        ("@daily @daily", "", "Expected one of: @annually, @daily, @hourly, @midnight, @monthly, @weekly, @yearly."),
        ("", "", "Expected an expression such as 0 7 * * 1-5."),
        (" \t\r\n", "", "Expected an expression such as 0 7 * * 1-5."),
        (None, "", "Expected an expression such as 0 7 * * 1-5."),
        (5, "", "Expected an expression such as 0 7 * * 1-5."),
        ("*" * 10_000, "", f"Expected at most {LONGEST} characters."),
        ("* " * 5_000, "", f"Expected at most {LONGEST} characters."),
        ("٥ * * * *", "", "Unexpected character: ٥"),
        ("５ * * * *", "", "Unexpected character: ５"),
        ("0 9 * * *\n0 10 * * *", "", "Unexpected character: U+000A"),
        ("0 9\u00a0* * *", "", "Unexpected character: U+00A0"),
        ("0 9 * * *\x00", "", "Unexpected character: U+0000"),
        ("0 9 * * \ud800", "", "Unexpected character: U+D800"),
        ("0 9 * * <b>", "", "Unexpected character: <"),
        ("0 0 30 2 *", "", "It never comes: no date has this day, month and weekday."),
        ("0 0 31 4,6,9,11 *", "", "It never comes: no date has this day, month and weekday."),
        ("0 0 LW * */6", "", "It never comes: no date has this day, month and weekday."),
    ],
)
def test_an_expression_is_refused_with_its_part_and_the_reason(expression, part, reason):
    with pytest.raises(BadCron) as refused:
        parse(expression, "America/Sao_Paulo")

    shown = f"{part}: {reason}" if part else reason
    assert (refused.value.part, refused.value.reason) == (part, reason)
    assert refused.value.errors == {"cron": [shown]}
    assert isinstance(refused.value, Invalid)


@pytest.mark.parametrize(
    "name",
    [
        *("+05:30", "-03:00", "UTC-3", "UTC+3", "Z", "Eastern Standard Time", "E. South America Standard Time"),
        *("Local", "local", "localtime", "Factory", "posixrules", "posix/UTC", "right/UTC", "America", "America/"),
        *("", " ", "America/Sao_Paulo ", "america/sao_paulo", "America\\Sao_Paulo", "Brasília", "UTC\n", "UTC\x00"),
        *("../America/Sao_Paulo", "/etc/localtime", "\ud800", "z" * 10_000, None, 3, ["UTC"]),
    ],
)
def test_what_is_no_zone_of_the_database_is_refused_as_such(name):
    with pytest.raises(BadCron) as refused:
        parse("0 9 * * *", name)

    assert (refused.value.field, refused.value.part) == ("timezone", "")
    assert list(refused.value.errors) == ["timezone"]
    assert refused.value.reason.startswith("Expected a time zone of the IANA database, such as America/Sao_Paulo")
    assert len(refused.value.reason) < 120
    assert refused.value.reason.isprintable()


def test_where_both_are_wrong_both_are_named():
    with pytest.raises(BadCron) as refused:
        parse("60 * * * *", "+05:30")

    assert list(refused.value.errors) == ["cron", "timezone"]


@pytest.mark.parametrize(
    "name", ["UTC", "America/Sao_Paulo", "Etc/GMT+3", "Asia/Calcutta", "America/Argentina/Ushuaia"]
)
def test_names_of_the_database_are_zones(name):
    assert parse("0 9 * * *", name).timezone == name
    assert name in zone_names()


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("  0  9\t* * *\r\n", "0 9 * * *"),
        ("0 9 * * mOn", "0 9 * * MON"),
        ("0 9 ? * 1", "0 9 * * 1"),
        ("0 9 * * 7", "0 9 * * 0"),
        ("0 9 * * SUN-SAT", "0 9 * * *"),
        ("0 9 * * 0-7", "0 9 * * *"),
        ("0 9 * * 1-7/2", "0 9 * * 1,3,5,0"),
        ("0 9 * * 7-2", "0 9 * * SUN-TUE"),
        ("0 9 * * 6-7", "0 9 * * SAT,SUN"),
        ("0 9 * NOV-FEB *", "0 9 * 11,12,1,2 *"),
        ("0 9 28-3 * *", "0 9 28,29,30,31,1,2,3 * *"),
        ("50-10/10 * * * *", "0,10,50 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@weekly", "0 0 * * 0"),
        ("0 0 9 * * *", "0 9 * * *"),
        ("09 09 * * *", "9 9 * * *"),
        ("0 9 * * friL", "0 9 * * 5L"),
        ("0 9 lw,15w * *", "0 9 15W,LW * *"),
    ],
)
def test_two_ways_of_writing_mean_the_same(expression, same):
    one, other = parse(expression, "Europe/Lisbon"), parse(same, "Europe/Lisbon")

    assert one.upcoming(NOW, 20) == other.upcoming(NOW, 20)
    assert one.text == " ".join(expression.split()) or one.text == expression.lower()


ALPHABET = st.text(alphabet="0123456789*/,-?#LWlw \tmonjan@", min_size=1, max_size=30)
FIELDS = st.lists(st.text(alphabet="01235679*/,-?#LW", min_size=1, max_size=5), min_size=5, max_size=6).map(" ".join)


@settings(max_examples=300)
@example(expression="*/30 2 * 3 SUN#2", timezone="America/New_York")  # its times are in the gap of every year
@given(
    expression=st.one_of(st.text(max_size=300), ALPHABET, FIELDS),
    timezone=st.one_of(st.just("America/Sao_Paulo"), st.sampled_from(sorted(zone_names())), st.text(max_size=60)),
)
def test_whatever_is_written_runs_or_is_refused(expression, timezone):
    errors = {}
    try:
        schedule = parse(expression, timezone)
        coming = schedule.next(NOW)
    except BadCron as refused:
        errors = refused.errors
    else:
        assert coming > NOW
        assert describe(schedule)

    assert all(text.isprintable() for texts in errors.values() for text in texts)


@pytest.mark.parametrize("after", [datetime.max, datetime(9990, 1, 1)])  # noqa: DTZ001, DTZ901 - an offset is given below
def test_at_the_end_of_the_calendar_nothing_comes(after):
    schedule = parse("* * * * * *", "America/Sao_Paulo")

    with pytest.raises(BadCron, match="does not come"):
        schedule.next(after.replace(tzinfo=UTC))
    assert schedule.upcoming(after.replace(tzinfo=UTC), 5) == []
    assert schedule.missed(after.replace(tzinfo=UTC) - timedelta(days=1), after.replace(tzinfo=UTC), 5) == []


def test_before_the_calendar_begins_the_first_of_it_comes_next():
    first = datetime.min.replace(tzinfo=UTC)

    schedule = parse("0 12 * * *", "America/Sao_Paulo")

    assert schedule.next(first).year == 1900
    assert schedule.missed(first, first + timedelta(days=400), 5) == []
    assert schedule.count(first, first + timedelta(days=400)) == 0


@pytest.mark.parametrize("fault", [PermissionError(errno.EACCES, "Permission denied"), ValueError("Invalid TZif file")])
def test_a_zone_whose_file_can_not_be_read_is_refused(monkeypatch, fault):
    monkeypatch.setattr(zones, "ZoneInfo", lambda _name: fails(fault))
    with pytest.raises(BadCron):
        zone("Europe/Lisbon")


def test_where_no_more_files_can_be_opened_no_zone_is_said_to_be_wrong(monkeypatch):
    monkeypatch.setattr(zones, "ZoneInfo", lambda _name: fails(OSError(errno.EMFILE, "Too many open files")))
    with pytest.raises(OSError, match="Too many"):
        zone("Europe/Lisbon")


def fails(fault):
    raise fault


def test_an_instant_without_an_offset_is_a_mistake_of_the_caller():
    schedule = parse("0 12 * * *", "UTC")
    naive = NOW.replace(tzinfo=None)

    for ask in (
        lambda: schedule.next(naive),
        lambda: schedule.upcoming(naive, 1),
        lambda: schedule.missed(naive, NOW, 1),
        lambda: schedule.missed(NOW, naive, 1),
        lambda: schedule.count(NOW, naive),
    ):
        with pytest.raises(ValueError, match="offset"):
            ask()
