"""The loop of async handlers: what one of them does to it costs no other its end, its slot or its time."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async

from jobs.errors import JobTimeout
from jobs.outcomes import Ending
from jobs.registry import catalogue, job_type
from jobs.states import Outcome, State
from tests.isolation.house import claim_of
from workers.clock import boottime
from workers.execution import Execution, prepare
from workers.isolation import HandlerLoop
from workers.leases import Held


class Loop:
    """A handler loop, and how what it was given has ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[Held, list[Ending]] = {}
        self.loop = HandlerLoop(self._done)
        self.events = self.loop._loop
        self.loop.start()

    def _done(self, execution: Execution, ending: Ending) -> None:
        with self._changed:
            self._ends.setdefault(execution.held, []).append(ending)
            self._changed.notify_all()

    def start(self, *types: str, **fields: object) -> list[Held]:
        """Start one job of each type, in one go."""
        held = [Held(claim_of(type_, {}, **({"max_attempts": 1} | fields)), boottime() + 600) for type_ in types]
        self.loop.start_all([prepare(one, lambda ctx: None) for one in held])
        return held

    def end(self, held: Held) -> Ending:
        """How it ended; it was told once."""
        with self._changed:
            assert self._changed.wait_for(lambda: held in self._ends, 30), f"{held.claim.type} did not end"
            [ending] = self._ends[held]
            return ending

    def run(self, type_: str, **fields: object) -> Ending:
        [held] = self.start(type_, **fields)
        return self.end(held)

    def close(self) -> None:
        """End the thread, and what tasks are left with it."""
        self.loop.close()
        self.events.run_until_complete(self._end_tasks(asyncio.all_tasks(self.events)))
        self.events.close()

    async def _end_tasks(self, left: set["asyncio.Task[object]"]) -> None:
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@pytest.fixture
def loop() -> Iterator[Loop]:
    with catalogue.scratch():
        made = Loop()
        yield made
        made.close()


def test_who_holds_the_thread_of_the_orm_keeps_no_failed_handler_from_its_end(loop):
    """Connections are closed behind a failure, in that thread, and not waited for."""
    holding, free = threading.Event(), threading.Event()

    def hold():
        holding.set()
        assert free.wait(60)

    @job_type("loop.holds")
    async def holds(ctx):
        await sync_to_async(hold)()

    @job_type("loop.fails")
    async def fails(ctx):
        raise ConnectionError("it may work in a moment")

    [held] = loop.start("loop.holds")
    assert holding.wait(30)
    ending = loop.run("loop.fails")
    assert (ending.to, ending.tries) == (State.FAILED, 3)  # the pauses between two tries wait for nobody either
    free.set()
    assert loop.end(held).to == State.SUCCEEDED


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
@pytest.mark.parametrize("left", [False, True], ids=["awaited", "left alone"])
def test_what_a_task_of_a_handlers_own_raises_breaks_the_loop_for_nobody(loop, error, left):
    gate = asyncio.Event()

    async def raises():
        raise error.with_traceback(None)

    @job_type("loop.waits")
    async def waits(ctx):
        await gate.wait()
        return "waited"

    @job_type("loop.task")
    async def task(ctx):
        made = asyncio.ensure_future(raises())
        if not left:
            await made
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "left"

    [neighbour] = loop.start("loop.waits")
    ending = loop.run("loop.task")
    if left:
        assert (ending.to, ending.result) == (State.SUCCEEDED, '"left"')
    else:
        assert (ending.to, ending.error.type) == (State.FAILED, type(error).__name__)
    loop.events.call_soon_threadsafe(gate.set)
    assert loop.end(neighbour).result == '"waited"'


def test_an_error_in_a_group_of_tasks_ends_them_all_and_the_job(loop):
    @job_type("loop.group")
    async def group(ctx):
        async def raises():
            raise ValueError("one of them")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ctx.asleep(600))
            tasks.create_task(raises())

    ending = loop.run("loop.group")
    assert (ending.to, ending.error.type) == (State.FAILED, "ExceptionGroup")
    assert "ValueError: one of them" in ending.error.stack


def test_a_group_of_tasks_that_runs_out_of_time_is_timed_out_and_names_the_limit(loop):
    """Its tasks hear the word "stop" each, so that an exception group comes of it."""

    @job_type("loop.group")
    async def group(ctx):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(ctx.asleep(600))

    ending = loop.run("loop.group", timeout=0.2)
    assert (ending.outcome, ending.error.type) == (Outcome.TIMED_OUT, "JobTimeout")
    assert "0.2 s" in ending.error.message
    assert "ExceptionGroup" in ending.error.stack


def test_a_handler_that_makes_another_error_of_its_limit_is_timed_out_all_the_same(loop):
    @job_type("loop.wraps")
    async def wraps(ctx):
        try:
            await ctx.asleep(600)
        except JobTimeout as error:
            raise ValueError("too slow") from error

    ending = loop.run("loop.wraps", timeout=0.2)
    assert (ending.outcome, ending.error.type) == (Outcome.TIMED_OUT, "JobTimeout")
    assert "ValueError: too slow" in ending.error.stack


def test_who_cancels_all_tasks_of_the_loop_gives_back_what_had_not_begun_and_fails_what_had(loop):
    @job_type("loop.waits")
    async def waits(ctx):
        await ctx.asleep(600)

    @job_type("loop.cancels")
    async def cancels(ctx):
        for task in asyncio.all_tasks():
            task.cancel()
        return "done"

    @job_type("loop.nothing")
    async def nothing(ctx):
        """Ends."""

    [begun] = loop.start("loop.waits")
    loop.run("loop.nothing")  # which began after it
    canceller, behind = loop.start("loop.cancels", "loop.waits")
    assert (loop.end(begun).to, loop.end(begun).error.type) == (State.FAILED, "CancelledError")
    assert loop.end(canceller).result == '"done"'
    ending = loop.end(behind)
    assert (ending.to, ending.outcome, ending.counted) == (State.ENQUEUED, Outcome.INTERRUPTED, False)


def test_who_stops_the_loop_stops_nobody(loop):
    @job_type("loop.stops")
    async def stops(ctx):
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
        return "went on"

    assert loop.run("loop.stops").result == '"went on"'
    assert loop.run("loop.stops").result == '"went on"'


def test_a_hundred_handlers_out_of_time_are_a_hundred_timed_out(loop):
    @job_type("loop.sleeps")
    async def sleeps(ctx):
        await asyncio.sleep(600)

    for held in loop.start(*["loop.sleeps"] * 100, timeout=0.3):
        ending = loop.end(held)
        assert (ending.outcome, ending.error.type) == (Outcome.TIMED_OUT, "JobTimeout")
        assert "0.3 s" in ending.error.message
