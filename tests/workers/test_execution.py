"""What begins, and what does not: an execution in this process, without a worker around it."""

import asyncio

import pytest

from jobs.registry import catalogue, job_type
from jobs.states import Outcome, Reason, State
from tests.workers.test_leases import claim
from workers.clock import boottime
from workers.execution import prepare
from workers.leases import Held, Interrupt


@pytest.fixture
def begun():
    """The types whose handlers began."""
    names = []
    with catalogue.scratch():

        @job_type("t.plain", isolation="thread")
        def plain(ctx):
            """Says that it began."""
            names.append("plain")

        @job_type("t.async")
        async def coroutine(ctx):
            """Says that it began."""
            names.append("async")

        yield names


def run(type_, deadline):
    held = Held(claim(type=type_), deadline)
    execution = prepare(held, lambda ctx: None)
    ending = asyncio.run(execution.arun()) if type_ == "t.async" else execution.run()
    return held, ending


@pytest.mark.parametrize("type_", ["t.plain", "t.async"])
def test_no_handler_begins_after_its_deadline(begun, type_):
    """A process that was stopped between the claim and the start finds the deadline passed when it wakes."""
    held, ending = run(type_, boottime() - 1)
    assert begun == []
    assert held.interrupt is Interrupt.LOST
    assert (ending.to, ending.outcome, ending.reason) == (State.ENQUEUED, Outcome.INTERRUPTED, Reason.RELEASED)
    assert not ending.counted
    _, ending = run(type_, boottime() + 60)
    assert ending.to is State.SUCCEEDED
    assert len(begun) == 1
