"""Rates: what people may write, and that no window ever has more starts than are allowed."""

from random import Random

import pytest

from jobs.ratelimit import PARTS, RateLimit, parse_rate
from jobs.transitions.rates import Budget


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/m", (100, 60.0)),
        ("5/s", (5, 1.0)),
        ("1000 / h", (1000, 3600.0)),
        ("1/d", (1, 86400.0)),
        ("20/30s", (20, 30.0)),
        ("3/min", (3, 60.0)),
        ("7/10 min", (7, 600.0)),
        ("1/500ms", (1, 0.5)),
        ("1/7d", (1, 604800.0)),
    ],
)
def test_a_rate_is_read_and_written_so_that_it_is_read_the_same(text, rate):
    parsed = parse_rate(text)
    assert tuple(parsed) == rate
    assert parse_rate(str(parsed)) == parsed
    assert parse_rate(parsed) == parsed


@pytest.mark.parametrize(
    "text",
    ["", "100", "/m", "100/", "0/m", "-1/m", "1.5/m", "100/x", "100/0s", "100/8d", "10000001/m", "٣/m", "1/m\x00",
     "1/1e9s", None, 100, True, ["1/m"], "1/m/m", "1/" + "9" * 5000, "1/99ms"],
)  # fmt: skip
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(ValueError, match=r"expected|esperad"):
        parse_rate(text)


@pytest.mark.parametrize("seed", range(6))
def test_no_window_has_more_starts_than_are_allowed_and_little_is_lost(seed):
    rng = Random(seed)
    allowed, window = rng.choice([1, 3, 10, 100]), rng.choice([0.5, 1.0, 60.0, 3600.0])
    now, spent, starts = 1e9 + rng.random() * window, [], []
    for _ in range(3000):
        budget = Budget(allowed, window, spent, now)
        if budget.take():
            starts.append(now)
        spent = budget.spent
        assert len(spent) <= PARTS + 2
        now += budget.wait if rng.random() < 0.5 else rng.random() * window / max(1, allowed)
    for first, start in enumerate(starts):
        assert sum(1 for other in starts[first:] if other < start + window) <= allowed


def test_who_always_waits_gets_almost_all_that_is_allowed():
    now, spent, count = 1e9, [], 0
    while now < 1e9 + 6000:
        budget = Budget(100, 60.0, spent, now)
        count += budget.take()
        spent, now = budget.spent, now + budget.wait
    assert 0.96 * 10_000 <= count <= 10_100


def test_who_is_woken_takes_room_from_others_that_wait_and_starts_from_nobody():
    budget = Budget(3, 60.0, [], 1e9)
    assert [budget.promise() for _ in range(4)] == [True, True, True, False]
    assert (budget.room, budget.left, budget.spent, budget.news) == (0, 3, [], False)
    assert 60.0 < budget.wait < 62.0
    budget.promised = 1
    assert (budget.room, budget.wait) == (2, 0.0)
    assert ([budget.take() for _ in range(4)], budget.news) == ([True, True, True, False], True)


def test_with_more_woken_than_may_start_the_next_waits_until_all_of_them_could_have():
    budget = Budget(2, 60.0, [[int(1e9 // 1.2) - 25, 1]], 1e9)
    budget.promised = 1
    assert 29.0 < budget.wait < 32.0
    budget.promised = 9
    assert (budget.room, 60.0 < budget.wait < 62.0) == (0, True)


def test_a_clock_that_is_set_back_lets_no_more_start():
    budget = Budget(2, 60.0, [], 1e9)
    assert (budget.take(), budget.take(), budget.take()) == (True, True, False)
    assert not Budget(2, 60.0, budget.spent, 1e9 - 3600).take()


@pytest.mark.parametrize("back", [30.0, 3600.0])
def test_a_clock_that_is_set_back_keeps_nobody_waiting_for_more_than_two_windows(back):
    budget = Budget(2, 60.0, [], 1e9)
    assert (budget.take(), budget.take()) == (True, True)
    after = Budget(2, 60.0, budget.spent, 1e9 - back)
    assert (after.left, after.wait < 125.0) == (0, True)
    assert Budget(2, 60.0, after.spent, 1e9 - back + after.wait).take()


@pytest.mark.parametrize("spent", [None, "x", [[1]], [["a", "b"]], {"a": 1}, [None], [[1, 2, 3]], 7])
def test_a_row_that_somebody_has_spoiled_counts_as_empty(spent):
    assert Budget(2, 60.0, spent, 1e9).left == 2


def test_it_is_written_as_people_write_it():
    assert [str(RateLimit(5, window)) for window in (1.0, 60.0, 90.0, 7200.0, 0.5)] == [
        "5/s", "5/m", "5/90s", "5/2h", "5/0.5s",
    ]  # fmt: skip
