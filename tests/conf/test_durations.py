"""Durations in every form that a person writes, and what is refused."""

from datetime import timedelta

import pytest

from jobs.durations import LONGEST, parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("60s", 60.0),
        ("60", 60.0),
        ("60 s", 60.0),
        (" 60s ", 60.0),
        ("1.5s", 1.5),
        ("60S", 60.0),
        ("30sec", 30.0),
        ("10 min", 600.0),
        ("10m", 600.0),
        ("500ms", 0.5),
        ("2h", 7200.0),
        ("7d", 604800.0),
        ("0", 0.0),
        (0, 0.0),
        (15, 15.0),
        (0.25, 0.25),
        (timedelta(minutes=2), 120.0),
        (LONGEST, LONGEST),
    ],
    ids=repr,
)
def test_a_duration_is_read_in_each_form(written, seconds):
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "abc",
        "s",
        "-5s",
        "+5s",
        "5 weeks",
        "1h30m",
        "1e3",
        "1_000",
        ".5s",
        "5.s",
        "5,5s",
        "٦٠s",
        "60s;",
        "60 s s",
        "nan",
        "inf",
        "101 y",
        "9" * 400,
        "99999999d",
        -1,
        -0.001,
        float("nan"),
        float("inf"),
        float("-inf"),
        10**400,
        LONGEST + 1,
        timedelta(seconds=-1),
        True,
        None,
        [],
        {},
        b"60s",
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_duration_is_refused_with_what_was_expected(written):
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(written)
