"""What all viewers share: one computation a span, whoever asks and however many do at once; errors are nobody's."""

import ast
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dashboard import shared as module
from dashboard.shared import forget, shared
from tests.architecture.tree import sources

WAIT = 10


@pytest.fixture(autouse=True)
def _nothing_shared_yet():
    forget()
    yield
    forget()


@pytest.fixture
def clock(monkeypatch):
    """The clock that spans are measured by, moved by the test."""

    class Clock:
        now = 1000.0
        asked = threading.Semaphore(0)

        def monotonic(self) -> float:
            self.asked.release()
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


class Counted:
    """A computation that counts how often it is made."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


def test_a_value_is_computed_once_within_its_span(clock):
    compute = Counted()
    assert [shared("a", 1, compute) for _ in range(3)] == [1, 1, 1]
    clock.now += 0.9
    assert shared("a", 1, compute) == 1
    clock.now += 0.1
    assert shared("a", 1, compute) == 2


def test_a_value_is_as_old_as_the_beginning_of_its_computation(clock):
    def slow() -> float:
        clock.now += 5
        return clock.now

    first = shared("a", 3, slow)
    assert shared("a", 3, slow) > first


def test_names_are_shared_apart(clock):
    compute = Counted()
    assert (shared("a", 1, compute), shared("b", 1, compute), shared("a", 1, compute)) == (1, 2, 1)


def test_a_span_of_nothing_computes_each_time(clock):
    compute = Counted()
    assert [shared("a", 0, compute) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("value", [None, 0, "", []], ids=repr)
def test_a_value_that_is_nothing_is_kept_too(clock, value):
    calls = []
    for _ in range(3):
        assert shared("a", 1, lambda: calls.append(1) or value) == value
    assert len(calls) == 1


def test_an_error_goes_to_who_asked_and_is_not_kept(clock):
    def fails() -> int:
        raise RuntimeError("the database is away")

    with pytest.raises(RuntimeError, match="away"):
        shared("a", 60, fails)
    compute = Counted()
    assert shared("a", 60, compute) == 1
    assert shared("a", 60, fails) == 1


def test_an_error_leaves_no_old_value_in_the_place_of_a_new_one(clock):
    compute = Counted()
    shared("a", 1, compute)
    clock.now += 2
    with pytest.raises(RuntimeError):
        shared("a", 1, _raise)
    assert shared("a", 1, compute) == 2


def test_what_is_forgotten_is_computed_anew(clock):
    compute = Counted()
    shared("a", 60, compute)
    forget()
    assert shared("a", 60, compute) == 2


def test_callers_at_once_get_the_answer_of_one_computation():
    callers = 16
    gate, begun, calls = threading.Event(), threading.Event(), []

    def slow() -> str:
        calls.append(threading.get_ident())
        begun.set()
        assert gate.wait(WAIT)
        return "value"

    with ThreadPoolExecutor(callers) as pool:
        asked = [pool.submit(shared, "a", 60, slow) for _ in range(callers)]
        assert begun.wait(WAIT)
        gate.set()
        assert {future.result(WAIT) for future in asked} == {"value"}
    assert len(calls) == 1


def test_who_came_while_a_slow_value_was_computed_takes_it_though_its_span_is_over(clock):
    gate, begun, calls = threading.Event(), threading.Event(), []

    def slow() -> str:
        calls.append(1)
        begun.set()
        assert gate.wait(WAIT)
        clock.now += 50
        return "value"

    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(shared, "a", 1, slow)
        assert begun.wait(WAIT)
        others = [pool.submit(shared, "a", 1, slow) for _ in range(8)]
        for _ in range(2 + 8):  # the first looks twice, each of the others has looked once
            assert clock.asked.acquire(timeout=WAIT)
        gate.set()
        assert {future.result(WAIT) for future in [first, *others]} == {"value"}
    assert len(calls) == 1


def test_a_slow_computation_holds_up_no_other_name():
    gate, begun = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert gate.wait(WAIT)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared, "slow", 60, slow)
        assert begun.wait(WAIT)
        assert shared("quick", 60, lambda: "quick") == "quick"
        gate.set()
        assert waiting.result(WAIT) == "slow"


def test_who_waits_for_a_computation_that_fails_tries_it_again():
    gate, begun, calls = threading.Event(), threading.Event(), []

    def once() -> str:
        calls.append(1)
        if len(calls) > 1:
            return "second"
        begun.set()
        assert gate.wait(WAIT)
        raise RuntimeError("first")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared, "a", 60, once)
        assert begun.wait(WAIT)
        second = pool.submit(shared, "a", 60, once)
        gate.set()
        with pytest.raises(RuntimeError, match="first"):
            first.result(WAIT)
        assert second.result(WAIT) == "second"


def test_what_was_being_computed_when_all_was_forgotten_is_not_shared_afterwards():
    gate, begun = threading.Event(), threading.Event()

    def old() -> str:
        begun.set()
        assert gate.wait(WAIT)
        return "before the act"

    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(shared, "a", 60, old)
        assert begun.wait(WAIT)
        forget()
        assert shared("a", 60, lambda: "after the act") == "after the act"
        gate.set()
        assert earlier.result(WAIT) == "before the act"
    assert shared("a", 60, lambda: "again") == "after the act"


def test_a_computation_may_ask_for_another_shared_value():
    def board() -> str:
        return "board of " + shared("durations", 60, lambda: "durations")

    assert shared("board", 60, board) == "board of durations"


def test_a_name_means_the_same_everywhere():
    meanings: dict[str, set[str]] = {}
    for path, tree in sources("dashboard").items():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "shared":
                name = ast.literal_eval(call.args[0])
                meanings.setdefault(name, set()).add(ast.unparse(call.args[2]))
                assert isinstance(name, str), path
    assert meanings
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def _raise() -> int:
    raise RuntimeError
