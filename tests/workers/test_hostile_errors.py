"""Whatever a handler raises, in this process: its job ends with an error that can be stored and read."""

import asyncio
import linecache

import pytest
from django.utils import translation

from jobs.outcomes import ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State
from tests.kit.hostile import ZOO, TwoArguments, chain, throw
from tests.workers.test_leases import claim
from workers import conclusion, stacks
from workers.clock import boottime
from workers.execution import prepare
from workers.leases import Held, Interrupt


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


def run(isolation, what, interrupt=None, **fields):
    held = Held(claim(type=f"hostile.{isolation}", payload={"what": what}, **fields), boottime() + 60)
    execution = prepare(held, lambda ctx: None)
    if interrupt is not None:
        held.interrupt = interrupt  # asked, while the handler has not heard it
    return asyncio.run(execution.arun()) if isolation == "async" else execution.run()


def assert_storable(info: ErrorInfo):
    for text in (info.type, info.message, info.stack, info.fingerprint):
        assert "\x00" not in text
        text.encode()
    assert len(info.type) <= 200
    assert len(info.message) <= conclusion.MESSAGE_LENGTH
    assert len(info.stack) <= conclusion.STACK_LENGTH
    assert len(info.fingerprint) == 32


@pytest.mark.parametrize("isolation", ["async", "thread"])
@pytest.mark.parametrize("what", ZOO)
def test_it_ends_failed_with_the_class_and_the_message_of_what_was_raised(what, isolation):
    ending = run(isolation, what, max_attempts=1)
    assert (ending.to, ending.outcome, ending.reason) == (State.FAILED, Outcome.FAILED, Reason.ATTEMPTS_USED_UP)
    assert (ending.failure_kind, ending.counted, ending.tries) == (FailureKind.ERROR, True, 1)
    _, type_, message = ZOO[what]
    assert ending.error.type == type_
    assert ending.error.message.startswith(message)
    assert_storable(ending.error)


@pytest.mark.parametrize("isolation", ["async", "thread"])
@pytest.mark.parametrize("why", [Interrupt.SHUTDOWN, Interrupt.LOST])
def test_what_came_of_tearing_it_down_is_not_the_jobs_fault_whatever_it_is(why, isolation):
    for what in ("bare", "no class", "no traceback", "stop"):
        ending = run(isolation, what, why)
        assert (ending.to, ending.outcome, ending.counted) == (State.ENQUEUED, Outcome.INTERRUPTED, False), what


def raised(error):
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001
        return caught


def described(error):
    return conclusion.describe("a.type", raised(error))


def test_of_a_long_chain_the_last_and_the_first_error_are_told():
    stack = described(chain()).stack
    assert "KeyError: 1999" in stack
    assert "by 1999 exceptions that are not shown" in stack
    assert stack.rstrip().endswith("ValueError: the first")


def test_of_a_large_group_some_members_are_told_and_the_others_counted():
    stack = described(ExceptionGroup("many", [ValueError(f"member {n}") for n in range(1000)])).stack
    assert "ValueError: member 9\n" in stack
    assert "member 10" not in stack
    assert "and 990 more exceptions" in stack


def test_of_a_group_the_first_error_is_told_and_tells_the_causes_apart():
    """The text of a group of tasks is the same whatever has happened in them."""

    def of(error):
        return described(ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inner", [error])]))

    told = of(ValueError("no such customer"))
    assert (told.type, told.message) == (
        "ExceptionGroup",
        "unhandled errors in a TaskGroup (1 sub-exception): ValueError: no such customer",
    )
    assert told.fingerprint == of(ValueError("no such customer")).fingerprint
    assert told.fingerprint != of(KeyError("total")).fingerprint
    assert told.fingerprint != of(ValueError("no such order")).fingerprint


def test_a_few_errors_are_told_as_python_tells_them():
    try:
        try:
            throw("two arguments")
        except TwoArguments as first:
            raise RuntimeError("then") from first
    except RuntimeError as error:
        stack = conclusion.describe("a.type", error).stack
    assert "TwoArguments: 1 and 2\n\nThe above exception was the direct cause of the following exception:" in stack
    assert stack.rstrip().endswith("RuntimeError: then")


def test_of_a_stack_that_is_too_long_both_ends_are_told(monkeypatch):
    error = raised(RuntimeError("the end"))
    error.__notes__ = [f"note {n} {'x' * 900}" for n in range(200)]
    stack = stacks.stack_of(error, 20_000)
    assert len(stack) <= 20_000
    assert stack.startswith("Traceback")
    assert "\n…\n" in stack
    assert "note 199" in stack
    assert "note 100" not in stack


def test_a_loader_that_can_not_show_its_code_costs_a_stack_its_lines_only(monkeypatch):
    monkeypatch.setattr(linecache, "getline", lambda *_: 1 / 0)
    monkeypatch.setattr(linecache, "getlines", lambda *_: 1 / 0)
    stack = described(ValueError("x")).stack
    assert 'test_hostile_errors.py", line' in stack
    assert "ZeroDivisionError" in stack


def test_a_cause_is_told_apart_by_the_handlers_own_code_and_not_by_that_of_libraries():
    def one():
        asyncio.run(None)

    def other():
        asyncio.run(None)

    frames = set()
    for call in (one, other):
        with pytest.raises(ValueError, match="coroutine") as caught:
            call()
        frames.add(stacks.own_frame(caught.value))
    assert frames == {"test_hostile_errors:one", "test_hostile_errors:other"}


def test_who_was_raised_by_nobody_comes_from_nowhere():
    assert stacks.own_frame(ValueError("never raised")) == ""
    assert described(chain()).fingerprint == described(chain()).fingerprint
