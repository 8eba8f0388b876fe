"""The retry rule: bounded, finite and growing, whatever the settings and however often a job has failed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.durations import LONGEST
from jobs.retry import Again, Dead, Retry, RetryPolicy, after_loss, backoff, decide

SECONDS = st.just(0.0) | st.floats(0.001, LONGEST)
POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 100),
    base=SECONDS,
    factor=st.floats(1, 100),
    cap=SECONDS,
    jitter=st.floats(0, 1),
)
FAILURES = st.integers(1, 10_000)


def steady(policy: RetryPolicy) -> RetryPolicy:
    """The same curve without jitter."""
    return RetryPolicy(policy.max_attempts, policy.base, policy.factor, policy.cap, 0.0)


@given(POLICIES, FAILURES, st.randoms(use_true_random=False))
def test_every_wait_is_finite_and_within_the_cap_and_its_jitter(policy, failures, rng):
    delay = backoff(policy, failures, rng)
    assert 0 <= delay <= policy.cap * (1 + policy.jitter) * (1 + 1e-9)


@given(POLICIES, FAILURES, st.randoms(use_true_random=False))
def test_the_jitter_moves_a_wait_by_no_more_than_its_fraction(policy, failures, rng):
    plain = backoff(steady(policy), failures, rng)
    assert abs(backoff(policy, failures, rng) - plain) <= plain * policy.jitter * (1 + 1e-9)


@given(POLICIES, st.integers(1, 9_999))
def test_a_later_failure_never_waits_shorter(policy, failures):
    plain = steady(policy)
    assert backoff(plain, failures, Random(0)) <= backoff(plain, failures + 1, Random(0))


@given(POLICIES, st.integers(1, 12))
def test_the_curve_is_base_times_factor_to_the_power_until_the_cap(policy, failures):
    expected = min(policy.cap, policy.base * policy.factor ** (failures - 1))
    assert backoff(steady(policy), failures, Random(0)) == pytest.approx(expected)


def test_the_curve_of_the_defaults():
    policy = RetryPolicy(jitter=0)
    assert [backoff(policy, n, Random(0)) for n in range(1, 9)] == [15, 30, 60, 120, 240, 480, 900, 900]


@given(POLICIES, st.integers(1, 200), st.randoms(use_true_random=False))
def test_a_failure_is_the_last_exactly_when_all_attempts_are_used(policy, used, rng):
    decision = decide(policy, used, rng)
    assert isinstance(decision, Dead if used >= policy.max_attempts else Retry)


@pytest.mark.parametrize(
    ("used", "lost", "expected"),
    [
        (1, 1, Again()),
        (4, 1, Again()),
        (5, 1, Dead()),
        (2, 2, Retry(15)),
        (4, 2, Retry(15)),
        (5, 2, Dead()),
        (3, 3, Retry(30)),
        (4, 4, Dead()),
        (1, 4, Dead()),
    ],
)
def test_a_loss_is_repeated_at_once_then_waits_then_ends_the_job(used, lost, expected):
    policy = RetryPolicy(max_attempts=5, jitter=0)
    assert after_loss(policy, used, lost, 4, Random(0)) == expected


@given(POLICIES, st.integers(1, 100), st.integers(1, 100), st.integers(1, 100), st.randoms(use_true_random=False))
def test_a_loss_ends_the_job_at_whichever_limit_comes_first(policy, used, lost, limit, rng):
    dead = used >= policy.max_attempts or lost >= limit
    assert isinstance(after_loss(policy, used, lost, limit, rng), Dead) is dead
