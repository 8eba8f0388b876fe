"""What an error makes of a job: pure, without a database."""

from random import Random

import pytest

from jobs.errors import JobTimeout, PermanentJobError, Snooze
from jobs.fingerprint import fingerprint
from jobs.retry import RetryPolicy
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from tests.workers.test_leases import claim
from workers import conclusion
from workers.leases import Interrupt

POLICY = RetryPolicy(max_attempts=99, base=10, factor=2, cap=100, jitter=0)


def caught(error):
    try:
        raise error
    except BaseException as raised:  # noqa: BLE001
        return raised


def failed(error, **changes):
    return conclusion.failed(claim(**changes), caught(error), POLICY, Random(1))


def test_a_failure_with_attempts_left_waits_longer_each_time():
    first, third = failed(ValueError("x")), failed(ValueError("x"), attempts_used=2)
    assert (first.to, first.waiting_for, first.delay) == (State.SCHEDULED, Waiting.RETRY, 10)
    assert third.delay == 40


def test_the_jobs_own_number_of_attempts_counts_not_the_types():
    last = failed(ValueError("x"), attempts_used=2, max_attempts=3)
    assert (last.to, last.reason, last.failure_kind) == (State.FAILED, Reason.ATTEMPTS_USED_UP, FailureKind.ERROR)


def test_a_permanent_error_is_dead_at_once():
    dead = failed(PermanentJobError("no"))
    assert (dead.to, dead.failure_kind, dead.counted) == (State.FAILED, FailureKind.PERMANENT, True)


def test_the_last_timeout_says_so():
    dead = failed(JobTimeout("limit of 3 s"), max_attempts=1)
    assert (dead.outcome, dead.failure_kind) == (Outcome.TIMED_OUT, FailureKind.TIMEOUT)


def test_a_job_that_may_run_at_most_once_is_never_scheduled_again():
    assert failed(ValueError("x"), at_most_once=True).to is State.FAILED
    returned = conclusion.interrupted(claim(at_most_once=True), Interrupt.SHUTDOWN, RuntimeError(), POLICY, Random(1))
    assert (returned.to, returned.failure_kind) == (State.FAILED, FailureKind.INTERRUPTED)


def test_shutdown_and_a_lost_lease_charge_nobody():
    for why in (Interrupt.SHUTDOWN, Interrupt.LOST):
        ending = conclusion.interrupted(claim(), why, RuntimeError(), POLICY, Random(1))
        assert (ending.to, ending.outcome, ending.counted) == (State.ENQUEUED, Outcome.INTERRUPTED, False)


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), -3.0, 1e300])
def test_any_snooze_becomes_a_delay_that_can_be_stored(delay):
    ending = conclusion.snoozed(claim(), Snooze(delay))
    assert ending.delay is not None
    assert 0 <= ending.delay <= conclusion.LONGEST_WAIT


class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class WorseText(Exception):
    def __str__(self):
        raise KeyboardInterrupt


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def chain(length):
    error: BaseException = ValueError("root")
    for n in range(length):
        following = ValueError(f"link {n}")
        following.__cause__ = error
        error = following
    return error


@pytest.mark.parametrize(
    "error",
    [
        NoText(),
        WorseText(),
        TwoArguments(1, 2),
        ValueError("nul \x00 and \udcff half of a pair"),
        ValueError("x" * 1_000_000),
        ExceptionGroup("many", [ValueError(str(n)) for n in range(1000)]),
        chain(2000),
        SystemExit(3),
        KeyboardInterrupt(),
        MemoryError(),
        type("Ünïcode\nName", (Exception,), {})("x"),
    ],
    ids=lambda e: type(e).__name__[:20],
)
def test_whatever_is_raised_becomes_a_bounded_text_that_can_be_stored(error):
    info = conclusion.describe("a.type", caught(error))
    for text in (info.type, info.message, info.stack):
        assert "\x00" not in text
        text.encode("utf-8")
    assert info.type
    assert len(info.message) <= conclusion.MESSAGE_LENGTH
    assert len(info.stack) <= conclusion.STACK_LENGTH + 10
    assert len(info.fingerprint) == 32


def test_one_cause_has_one_fingerprint_whatever_varies_in_its_message():
    one = fingerprint("t", "E", "client 4711 at https://a.example/x?y=1 said 'no' to 0xdeadbeef")
    other = fingerprint("t", "E", "client 99 at https://b.example/ said 'never' to 0xcafe")
    assert one == other
    assert one != fingerprint("t", "E", "another cause")
    assert one != fingerprint("t2", "E", "client 4711 at https://a.example/x?y=1 said 'no' to 0xdeadbeef")
    assert one != fingerprint("t", "E", "client 4711 at https://a.example/x?y=1 said 'no' to 0xdeadbeef", "m:f")
