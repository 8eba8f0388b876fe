"""The windows of a worker: what counts, and when they open a breaker for all."""

import pytest

from jobs.conf import overridden
from jobs.outcomes import Ending
from jobs.states import FailureKind, Outcome, Reason, State
from tests.kit.clocks import Clock
from tests.transitions import COMMITTED
from tests.transitions.rows import ago, execute, select
from workers.breakers import Breakers, charged

TYPE = "a.type"


def ending(outcome, **more):
    return Ending(None, None, State.SCHEDULED, outcome, Reason.RETRY, **more)


@pytest.mark.parametrize(
    ("end", "state", "counts"),
    [
        (ending(Outcome.SUCCEEDED), State.SUCCEEDED, False),
        (ending(Outcome.FAILED), State.SCHEDULED, True),
        (ending(Outcome.FAILED, failure_kind=FailureKind.ERROR), State.FAILED, True),
        (ending(Outcome.TIMED_OUT), State.SCHEDULED, True),
        (ending(Outcome.WORKER_LOST, lost=True, signal=9), State.ENQUEUED, True),
        (ending(Outcome.WORKER_LOST, lost=True, exit_code=0), State.ENQUEUED, True),
        (ending(Outcome.WORKER_LOST, lost=True), State.ENQUEUED, None),  # no process could be started
        (ending(Outcome.FAILED, failure_kind=FailureKind.PERMANENT), State.FAILED, None),
        (ending(Outcome.FAILED), State.CANCELLED, None),
        (ending(Outcome.CANCELLED), State.CANCELLED, None),
        (ending(Outcome.SNOOZED), State.SCHEDULED, None),
        (ending(Outcome.INTERRUPTED), State.ENQUEUED, None),
        (ending(Outcome.BUSINESS, failure_kind=FailureKind.BUSINESS), State.FAILED, None),
        (ending(Outcome.FAILED), None, None),  # its lease was lost: it is nobody's end
    ],
)
def test_what_an_end_says_about_what_its_type_depends_on(end, state, counts):
    assert charged(end, state) is counts


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breakers(clock):
    return Breakers(clock)


@pytest.fixture
def circuits():
    yield lambda: {row["type"]: row for row in select("SELECT * FROM turno.circuits")}
    execute("DELETE FROM turno.circuits")


def record(breakers, *failed, type_name=TYPE):
    for one in failed:
        breakers.record(type_name, one)
    breakers.trip()


pytestmark = [COMMITTED, pytest.mark.usefixtures("transactional_db")]


def test_ten_executions_of_which_half_failed_open_it_with_the_figures(breakers, circuits):
    record(breakers, *[True] * 5, *[False] * 4)
    assert circuits() == {}
    record(breakers, False)
    assert circuits() == {}  # a success opens nothing
    record(breakers, True)
    row = circuits()[TYPE]
    assert (row["state"], row["failures"], row["executions"]) == ("open", 6, 11)


def test_each_type_has_a_window_of_its_own(breakers, circuits):
    record(breakers, *[True] * 9)
    record(breakers, *[True] * 9, type_name="b.type")
    assert circuits() == {}


def test_what_does_not_count_neither_opens_nor_dilutes(breakers, circuits):
    record(breakers, *[None] * 100, *[True] * 9)
    assert circuits() == {}
    record(breakers, *[None] * 100, True)
    assert circuits()[TYPE]["executions"] == 10


def test_failures_long_ago_do_not_count(breakers, circuits, clock):
    record(breakers, *[True] * 9)
    clock.now += 31
    record(breakers, True)
    assert circuits() == {}


def test_the_configuration_of_the_type_wins(breakers, circuits):
    types = {TYPE: {"breaker_minimum": 2, "breaker_ratio": 1.0, "breaker_open_for": 5.0}, "b.type": {"breaker": False}}
    with overridden(resilience={"types": types}):
        record(breakers, True, True)
        record(breakers, *[True] * 50, type_name="b.type")
    assert list(circuits()) == [TYPE]
    assert circuits()[TYPE]["open_for"] == 5.0


def test_after_it_has_opened_the_window_begins_anew(breakers, circuits):
    record(breakers, *[True] * 10)
    execute("UPDATE turno.circuits SET state = 'closed'")
    record(breakers, *[True] * 9)
    assert circuits()[TYPE]["state"] == "closed"
    record(breakers, True)
    assert circuits()[TYPE]["state"] == "open"


def test_what_failed_before_another_worker_saw_it_close_opens_nothing(breakers, circuits, clock):
    record(breakers, *[True] * 9)
    clock.now += 20
    execute(f"INSERT INTO turno.circuits (type, closed_at) VALUES ('{TYPE}', {ago(5)})")
    record(breakers, True)
    assert circuits()[TYPE]["state"] == "closed"
    record(breakers, *[True] * 8)
    assert circuits()[TYPE]["state"] == "closed"
    record(breakers, True)  # ten since it closed
    assert circuits()[TYPE]["state"] == "open"


def test_failures_since_it_closed_are_reason_enough_by_themselves(breakers, circuits, clock):
    record(breakers, *[True] * 3)
    clock.now += 20
    execute(f"INSERT INTO turno.circuits (type, closed_at) VALUES ('{TYPE}', {ago(10)})")
    record(breakers, *[True] * 12)
    row = circuits()[TYPE]
    assert (row["state"], row["executions"]) == ("open", 12)
