"""The window of a breaker: a pure count over time, bounded however much happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.breaker import STEPS, BreakerPolicy, Tally, Window

POLICY = BreakerPolicy()


def window_of(*outcomes, span=30.0):
    """A window over (instant, failed)."""
    window = Window(span)
    for now, failed in outcomes:
        window.record(failed=failed, now=now)
    return window


@pytest.mark.parametrize(
    ("failures", "executions", "opens"),
    [(10, 10, True), (5, 10, True), (4, 10, False), (9, 9, False), (0, 100, False), (50, 100, True), (49, 100, False)],
)
def test_half_of_at_least_ten_executions_opens(failures, executions, opens):
    assert Tally(executions, failures).opens(POLICY) is opens


def test_a_breaker_that_is_switched_off_never_opens():
    assert not Tally(1000, 1000).opens(BreakerPolicy(enabled=False))


def test_a_ratio_of_one_wants_every_execution_to_fail():
    policy = BreakerPolicy(ratio=1.0, minimum=2)
    assert Tally(2, 2).opens(policy)
    assert not Tally(3, 2).opens(policy)


def test_what_is_older_than_the_window_counts_no_more():
    window = window_of(*((0.5 * n, True) for n in range(10)), (40.0, False))
    assert window.tally(40.0) == Tally(1, 0, 0.0)


def test_the_age_reaches_back_to_the_earliest_outcome_that_counts():
    window = window_of((100.0, True), (103.0, False), (110.0, True))
    assert window.tally(112.0) == Tally(3, 2, 12.0)
    window.keep(10.0, now=112.0)
    assert window.tally(112.0) == Tally(2, 1, 9.0)


def test_keeping_nothing_leaves_nothing():
    window = window_of((1.0, True), (2.0, True))
    window.clear()
    assert window.tally(2.0) == Tally()


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=300), st.floats(0.5, 60))
def test_the_window_counts_what_a_list_would_count_to_a_thirtieth_of_its_length(outcomes, span):
    outcomes.sort(key=lambda outcome: outcome[0])
    now = outcomes[-1][0] if outcomes else 0.0
    tally = window_of(*outcomes, span=span).tally(now)
    surely = [failed for at, failed in outcomes if at >= now - span + span / STEPS]
    maybe = [failed for at, failed in outcomes if at >= now - span - 1e-9]
    assert len(surely) <= tally.executions <= len(maybe)
    assert sum(surely) <= tally.failures <= sum(maybe)
    assert 0 <= tally.age <= span


def test_a_hundred_thousand_outcomes_take_no_more_room_than_a_hundred():
    window = Window(30.0)
    for n in range(100_000):
        window.record(failed=n % 2 == 0, now=n / 1000)
    assert len(window._steps) <= STEPS + 1
