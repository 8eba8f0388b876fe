"""What is tried again at once within an attempt, how often, for how long, and what ends that."""

import asyncio
import errno
import socket
import threading
from types import new_class
from urllib.error import HTTPError, URLError

import pytest
from django.db import IntegrityError, OperationalError
from django.utils import translation

from jobs.conf import overridden
from jobs.errors import JobTimeout, PermanentJobError, Snooze, TransientJobError
from jobs.registry import catalogue, job_type
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from tests.workers.test_leases import claim
from workers import conclusion, execution
from workers.clock import boottime
from workers.execution import prepare
from workers.leases import Held, Interrupt
from workers.transience import is_transient

ISOLATIONS = ("async", "thread")


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


@pytest.fixture
def tries():
    """Two types whose handlers raise, or return, what comes next in `script`; how often they began is `began`."""

    class Tries:
        def __init__(self):
            self.script = []
            self.began = 0

        def next(self):
            step = self.script[min(self.began, len(self.script) - 1)]
            self.began += 1
            step = step() if callable(step) else step
            if isinstance(step, BaseException):
                raise step
            return step

    made = Tries()
    with catalogue.scratch(), overridden(resilience={"immediate_retry_delay": 0.001}):

        @job_type("t.async")
        async def coroutine(ctx):
            return made.next()

        @job_type("t.thread", isolation="thread")
        def plain(ctx):
            return made.next()

        @job_type("t.once", isolation="thread", at_most_once=True)
        def once(ctx):
            return made.next()

        yield made


def run(isolation, *, limit=None, interrupt=None, after=0.0, **fields):
    """The end of an execution that is asked to stop, if so, `after` seconds after its start."""
    held = Held(claim(type=f"t.{isolation}", **({"max_attempts": 5, "timeout": limit} | fields)), boottime() + 60)
    made = prepare(held, lambda ctx: None)
    timer = threading.Timer(after, (lambda: held.ask(interrupt)) if interrupt else made.time_out)
    if interrupt or limit:
        timer.start()
    try:
        return asyncio.run(made.arun()) if isolation == "async" else made.run()
    finally:
        timer.cancel()


def unreached(module, name):
    """An error of a library that is not here."""
    kind = new_class(name, (Exception,))
    kind.__module__ = module
    return new_class("Derived", (kind,))("away")


def doubled(error):
    """A group that holds a group twice, and so on: 2 to the power of 60 errors when each is looked at."""
    for _ in range(60):
        error = ExceptionGroup("twice", [error, error])
    return error


def nested(error):
    for _ in range(5000):
        error = ExceptionGroup("one", [error])
    return error


class Gone(PermanentJobError, ConnectionError):
    """The address will never be reached again."""


PASSES = [
    TransientJobError("later"),
    ConnectionResetError(),
    BrokenPipeError(),
    TimeoutError(),
    InterruptedError(),
    OperationalError("away"),
    OSError(errno.ENETUNREACH, "no network"),
    OSError(errno.EHOSTUNREACH, "no host"),
    socket.gaierror(socket.EAI_AGAIN, "no name server"),
    URLError(ConnectionRefusedError()),
    URLError(socket.gaierror(socket.EAI_AGAIN, "no name server")),
    unreached("httpx", "NetworkError"),
    unreached("requests.exceptions", "Timeout"),
    ExceptionGroup("all", [ConnectionError(), ExceptionGroup("of them", [TimeoutError()])]),
    pytest.param(doubled(ConnectionError()), id="doubled"),
    pytest.param(nested(ConnectionError()), id="nested"),
]
STAYS = [
    ValueError("x"),
    PermanentJobError("never"),
    JobTimeout("limit"),
    IntegrityError("twice"),
    FileNotFoundError("x"),
    PermissionError("x"),
    OSError(errno.ENOSPC, "full"),
    socket.gaierror(socket.EAI_NONAME, "no such host"),
    URLError("unknown scheme"),
    HTTPError("https://a.example", 404, "not there", None, None),
    unreached("httpx", "UnsupportedProtocol"),
    ExceptionGroup("one of them", [ConnectionError(), ValueError()]),
    Gone("moved"),
    SystemExit(1),
    MemoryError(),
]


@pytest.mark.parametrize("error", PASSES, ids=repr)
def test_what_passes_by_itself_is_tried_again_at_once(error):
    assert is_transient(error)


@pytest.mark.parametrize("error", STAYS, ids=repr)
def test_what_does_not_pass_is_not(error):
    assert not is_transient(error)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("rest", [[], [ConnectionError("away")], [Snooze(1)]], ids=["alone", "passing", "snooze"])
def test_a_permanent_error_in_a_group_of_tasks_is_permanent(tries, isolation, rest):
    tries.script = [lambda: ExceptionGroup("tasks", [*rest, ExceptionGroup("inner", [PermanentJobError("never")])])]
    ending = run(isolation)
    assert (tries.began, ending.to, ending.failure_kind) == (1, State.FAILED, FailureKind.PERMANENT)
    assert ending.error.type == "ExceptionGroup"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_group_of_nothing_but_snoozes_is_the_longest_of_them(tries, isolation):
    tries.script = [lambda: ExceptionGroup("tasks", [Snooze(60), ExceptionGroup("inner", [Snooze(3600), Snooze(5)])])]
    ending = run(isolation)
    assert (ending.outcome, ending.delay, ending.counted, tries.began) == (Outcome.SNOOZED, 3600, False, 1)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_snooze_beside_another_error_is_a_failure(tries, isolation):
    tries.script = [lambda: ExceptionGroup("tasks", [Snooze(60), ValueError("x")])]
    ending = run(isolation)
    assert (ending.outcome, ending.to, ending.counted) == (Outcome.FAILED, State.SCHEDULED, True)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_twice_at_most_within_one_attempt(tries, isolation):
    tries.script = [ConnectionError("away")]
    ending = run(isolation)
    assert (tries.began, ending.tries) == (3, 3)
    assert (ending.to, ending.waiting_for, ending.counted) == (State.SCHEDULED, Waiting.RETRY, True)
    assert ending.error.type == "ConnectionError"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_until_it_works(tries, isolation):
    tries.script = [ConnectionError("away"), "done"]
    ending = run(isolation)
    assert (tries.began, ending.to, ending.result, ending.error) == (2, State.SUCCEEDED, '"done"', None)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    "last",
    [ValueError("another"), PermanentJobError("never"), SystemExit(1)],
    ids=lambda error: type(error).__name__,
)
def test_until_another_error_comes(tries, isolation, last):
    tries.script = [ConnectionError("away"), last]
    ending = run(isolation, max_attempts=1)
    assert (tries.began, ending.to, ending.error.type) == (2, State.FAILED, type(last).__name__)


@pytest.mark.parametrize("error", [ValueError("x"), PermanentJobError("x"), SystemExit(1)], ids=repr)
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_nothing_else_is_tried_again_at_once(tries, isolation, error):
    tries.script = [error]
    ending = run(isolation)
    assert (tries.began, ending.tries) == (1, 1)
    permanent = isinstance(error, PermanentJobError)
    assert ending.to == (State.FAILED if permanent else State.SCHEDULED)
    assert ending.failure_kind == (FailureKind.PERMANENT if permanent else None)


def test_a_job_that_may_run_at_most_once_is_not(tries):
    tries.script = [ConnectionError("away")]
    assert run("once", at_most_once=True).to == State.FAILED
    assert tries.began == 1


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    ("interrupt", "outcome", "to"),
    [
        (Interrupt.CANCELLED, Outcome.CANCELLED, State.CANCELLED),
        (Interrupt.SHUTDOWN, Outcome.INTERRUPTED, State.ENQUEUED),
        (Interrupt.LOST, Outcome.INTERRUPTED, State.ENQUEUED),
        (Interrupt.TIMEOUT, Outcome.TIMED_OUT, State.FAILED),
    ],
)
def test_who_is_asked_to_stop_between_two_tries_stops(tries, isolation, interrupt, outcome, to):
    tries.script = [ConnectionError("away")]
    with overridden(resilience={"immediate_retry_delay": 600}):
        if interrupt is Interrupt.TIMEOUT:
            ending = run(isolation, limit=0.1, after=0.1, max_attempts=1)
            assert "0.1 s" in ending.error.message
        else:
            ending = run(isolation, interrupt=interrupt, after=0.1, max_attempts=1)
    assert (tries.began, ending.outcome, ending.to) == (1, outcome, to)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_limit_is_over_all_tries_together(tries, isolation):
    tries.script = [ConnectionError("away")]
    with overridden(resilience={"immediate_retry_delay": 0.1, "immediate_retries": 10}):
        ending = run(isolation, limit=0.3, after=0.3, max_attempts=1)
    assert ending.outcome == Outcome.TIMED_OUT
    assert "0.3 s" in ending.error.message
    assert 1 <= tries.began < 11


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_connections_that_can_not_be_closed_in_the_pause_cost_no_try(tries, isolation, monkeypatch):
    def broken():
        raise OperationalError("can't be closed")

    monkeypatch.setattr(execution, "close_old_connections", broken)
    tries.script = [ConnectionError("away"), "done"]
    assert run(isolation).result == '"done"'


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("wrap", [lambda snooze: snooze, lambda snooze: lambda: snooze], ids=["raised", "returned"])
@pytest.mark.parametrize(
    ("delay", "stored"),
    [
        (1.5, 1.5),
        (0, 0),
        (-3.0, 0),
        (float("nan"), 0),
        (float("inf"), conclusion.LONGEST_WAIT),
        (1e300, conclusion.LONGEST_WAIT),
        (10**400, conclusion.LONGEST_WAIT),
        (-(10**400), 0),
    ],
    ids=lambda value: f"{value!r:.12}",
)
def test_a_snooze_is_no_failure_and_its_delay_can_be_stored(tries, isolation, delay, stored, wrap):
    snooze = wrap(Snooze(delay, "not now"))
    tries.script = [snooze]
    if callable(snooze):
        tries.next = snooze
    ending = run(isolation)
    assert (ending.to, ending.outcome, ending.reason) == (State.SCHEDULED, Outcome.SNOOZED, Reason.SNOOZED)
    assert (ending.delay, ending.counted, ending.waiting_for) == (stored, False, Waiting.SNOOZE)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_snooze_for_what_is_no_number_is_an_error_of_the_handler(tries, isolation):
    tries.script = [lambda: Snooze("soon")]
    ending = run(isolation)
    assert (ending.to, ending.error.type) == (State.SCHEDULED, "ValueError")


def test_a_wait_that_is_too_long_to_be_stored_is_cut():
    endless = conclusion.RetryPolicy(base=1e9, cap=3e9, jitter=0)
    ending = conclusion.failed(claim(max_attempts=5), ValueError("x"), endless, conclusion.Random(1))
    assert ending.delay == conclusion.LONGEST_WAIT
