"""The job types of a storm. Each writes `start`, a `beat` every 50 ms and `end`, with the job's id as the key."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from tests.kit.handlers import write
from turno.handlers import JobCancelled, JobContext, JobTimeout, LeaseLost, PermanentJobError, Snooze, job_type

PAUSE = 0.05  # seconds between two beats
SAY = 5  # beats between two words to the database
# As few failures as a storm brings open breakers, for a moment.
QUICK: dict[str, Any] = {"max_attempts": 12, "backoff_base": 0.2, "backoff_cap": 2.0}
AT_ONCE, A_SECOND = 2, "5/s"


class Work(BaseModel):
    """Works for `hold` seconds, and takes no notice of being asked to stop where it is `deaf`.

    Of its executions the first `fails` end in an error, which is `permanent` or not; the first one snoozes for `snooze`
    seconds; the first one `dies`: the process that runs it kills itself.
    """

    hold: float = 0.0
    deaf: bool = False
    fails: int = 0
    permanent: bool = False
    snooze: float = 0.0
    dies: bool = False


def conclude(ctx: JobContext, work: Work) -> Any:
    """How the execution ends. Its last line says that it came so far."""
    if ctx.execution == 1 and work.dies:
        os.kill(os.getpid(), signal.SIGKILL)
    if ctx.execution <= work.fails:
        raise PermanentJobError("never") if work.permanent else ValueError("not yet")
    write("end", "", ctx)
    if ctx.execution == 1 and work.snooze:
        return Snooze(work.snooze)
    return {"execution": ctx.execution}


def beats(ctx: JobContext, work: Work) -> Iterator[None]:
    """One step a beat, for as long as it works; each line is written before the step."""
    write("start", "", ctx)
    count, end = 0, time.monotonic() + work.hold
    while time.monotonic() < end:
        count += 1
        write("beat", "", ctx)
        if count % SAY == 0:
            ctx.report_progress(min(99, count), f"execution {ctx.execution}")
            ctx.log(f"beat {count}")
        yield


def plain(ctx: JobContext, work: Work) -> Any:
    """What the plain handlers do, wherever they run."""
    for _ in beats(ctx, work):
        if not work.deaf:
            ctx.sleep(PAUSE)
            continue
        with suppress(JobCancelled, JobTimeout, LeaseLost):
            time.sleep(PAUSE)
    return conclude(ctx, work)


async def on_a_loop(ctx: JobContext, work: Work) -> Any:
    """What the async handlers do."""
    for _ in beats(ctx, work):
        try:
            await asyncio.sleep(PAUSE)
        except asyncio.CancelledError:
            if not work.deaf:
                raise
    return conclude(ctx, work)


@job_type("storm.async", **QUICK)
async def storm_async(ctx: JobContext, payload: Work) -> Any:
    """Works on an event loop."""
    return await on_a_loop(ctx, payload)


@job_type("storm.thread", isolation="thread", **QUICK)
def storm_thread(ctx: JobContext, payload: Work) -> Any:
    """Works in a thread."""
    return plain(ctx, payload)


@job_type("storm.process", isolation="process", **QUICK)
def storm_process(ctx: JobContext, payload: Work) -> Any:
    """Works in a child process."""
    return plain(ctx, payload)


@job_type("storm.fresh", isolation="process", fresh=True, **QUICK)
def storm_fresh(ctx: JobContext, payload: Work) -> Any:
    """Works in a child process of its own."""
    return plain(ctx, payload)


@job_type("storm.flaky", **QUICK)
async def storm_flaky(ctx: JobContext, payload: Work) -> Any:
    """Fails often enough for a breaker."""
    return await on_a_loop(ctx, payload)


@job_type("storm.limited", max_running=AT_ONCE, **QUICK)
async def storm_limited(ctx: JobContext, payload: Work) -> Any:
    """No more than a few of it run at once, in all workers."""
    return await on_a_loop(ctx, payload)


@job_type("storm.rated", rate_limit=A_SECOND, **QUICK)
async def storm_rated(ctx: JobContext, payload: Work) -> Any:
    """No more than a few of it start within a second."""
    return await on_a_loop(ctx, payload)


@job_type("storm.recurring", **QUICK)
async def storm_recurring(ctx: JobContext, payload: Work) -> Any:
    """What the schedules make."""
    return await on_a_loop(ctx, payload)


@job_type("storm.once.async", at_most_once=True)
async def storm_once_async(ctx: JobContext, payload: Work) -> Any:
    """Works on an event loop, at most once."""
    return await on_a_loop(ctx, payload)


@job_type("storm.once.thread", at_most_once=True, isolation="thread")
def storm_once_thread(ctx: JobContext, payload: Work) -> Any:
    """Works in a thread, at most once."""
    return plain(ctx, payload)


@job_type("storm.once.process", at_most_once=True, isolation="process")
def storm_once_process(ctx: JobContext, payload: Work) -> Any:
    """Works in a child process, at most once."""
    return plain(ctx, payload)
