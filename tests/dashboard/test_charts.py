"""The drawing of executions a minute: pure functions."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts import GAP, HEIGHT, LEAST, WIDTH, bars, by_ten, chart, round_top
from jobs.queries import Minute

BEGIN = datetime(2026, 10, 14, 13, 33, tzinfo=UTC)
BAR = re.compile(r"M([\d.]+) ([\d.]+)h[\d.]+v-([\d.]+)h-[\d.]+z")


def minutes(*pairs, retried=0):
    return [Minute(BEGIN + timedelta(minutes=n), ok, bad, retried) for n, (ok, bad) in enumerate(pairs)]


def drawn(path):
    """(column, bottom, height) of each bar."""
    return [(float(x), float(bottom), float(height)) for x, bottom, height in BAR.findall(path)]


@pytest.mark.parametrize(
    ("peak", "top"), [(0, 2), (1, 2), (2, 2), (3, 4), (5, 10), (11, 20), (41, 50), (51, 100), (101, 200), (4100, 5000)]
)
def test_the_axis_ends_at_the_next_round_number_whose_half_is_whole(peak, top):
    assert round_top(peak) == top


@given(st.floats(min_value=0, max_value=1e9))
def test_the_axis_always_has_room_and_never_much_more(peak):
    top = round_top(peak)
    assert top >= peak
    assert top % 2 == 0
    assert top <= max(2, 2.5 * peak)


def test_there_is_a_bar_for_each_minute_that_ran_something():
    ok, ko = bars(minutes((5, 0), (0, 0), (0, 3), (4, 1)), 10)
    assert [round(x) for x, *_ in drawn(ok)] == [0, 3]
    assert [round(x) for x, *_ in drawn(ko)] == [2, 3]


def test_failures_stand_at_the_base_and_what_went_well_above_them_with_a_gap():
    ok, ko = bars(minutes((20, 5)), 50)
    ((_, base, failed),) = drawn(ko)
    ((_, bottom, height),) = drawn(ok)
    assert (base, failed) == (HEIGHT, 10)
    assert bottom == pytest.approx(HEIGHT - 10 - GAP)
    assert height == 40


def test_one_failure_among_thousands_is_seen():
    _, ko = bars(minutes((4000, 1)), 5000)
    ((_, _, height),) = drawn(ko)
    assert height == LEAST


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=60))
def test_nothing_is_drawn_outside_of_the_box(pairs):
    seen = chart(minutes(*pairs))
    for x, bottom, height in drawn(seen.ok) + drawn(seen.ko):
        assert 0 <= x <= len(pairs) - WIDTH
        assert -0.01 <= bottom - height <= HEIGHT


def test_the_figures_are_those_of_the_minutes():
    seen = chart(minutes((26, 1), (31, 0), (40, 1), (0, 0), retried=2))
    assert (seen.succeeded, seen.failed, seen.retried, seen.total) == (97, 2, 8, 99)
    assert (seen.peak, seen.peak_at) == (41, BEGIN + timedelta(minutes=2))
    assert seen.scale == (50, 25, 0)


def test_an_hour_has_four_times_below_it_a_quarter_apart_and_six_rows_of_ten_minutes():
    seen = chart(minutes(*[(1, 0)] * 60))
    assert seen.ticks == tuple(BEGIN + timedelta(minutes=n) for n in (0, 15, 30, 45))
    assert [(span.start.minute, span.succeeded) for span in seen.spans] == [(m % 60, 10) for m in range(33, 93, 10)]
    assert seen.width == 60


def test_the_rows_of_the_table_add_up_to_the_whole():
    all_of_them = minutes(*[(n, n % 3) for n in range(60)])
    assert sum(span.succeeded for span in by_ten(all_of_them)) == sum(range(60))
    assert sum(span.failed for span in by_ten(all_of_them)) == 60


def test_an_hour_in_which_nothing_ran_is_an_empty_axis():
    seen = chart(minutes(*[(0, 0)] * 60))
    assert (seen.ok, seen.ko, seen.total, seen.peak_at, seen.scale) == ("", "", 0, None, (2, 1, 0))
