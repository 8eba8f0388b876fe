"""Turno's handlers of the benchmarks: one for each kind of isolation; each notes that it ran."""

import asyncio

from pydantic import BaseModel

from benchmarks import tally
from turno.handlers import JobContext, job_type


@job_type("bench.async")
async def in_the_loop(ctx: JobContext) -> None:
    """Does nothing, in the handlers' loop."""
    tally.ran()


@job_type("bench.process")
def in_a_process(ctx: JobContext) -> None:
    """Does nothing, in a warm child process."""
    tally.ran()


@job_type("bench.thread", isolation="thread")
def in_a_thread(ctx: JobContext) -> None:
    """Does nothing, in a thread."""
    tally.ran()


class Text(BaseModel):
    """A payload of some size."""

    text: str


@job_type("bench.text")
async def text(ctx: JobContext, payload: Text) -> None:
    """Does nothing with it."""
    tally.ran()


class Sent(BaseModel):
    """When the job was asked for, in seconds of CLOCK_MONOTONIC."""

    sent: float


@job_type("bench.late")
async def late(ctx: JobContext, payload: Sent) -> None:
    """Notes how late it is."""
    tally.late(payload.sent)


class Pause(BaseModel):
    """How long to do nothing, in seconds."""

    seconds: float


@job_type("bench.pause")
async def pause(ctx: JobContext, payload: Pause) -> None:
    """Does nothing for a while."""
    tally.ran()
    await asyncio.sleep(payload.seconds)


@job_type("bench.cancelled")
async def cancelled(ctx: JobContext, payload: Pause) -> None:
    """Does nothing until somebody cancels it, and notes when it is told.

    It listens; a handler that does not is cancelled by the worker `worker.kill_grace` later.
    """
    tally.ran()
    await ctx.wait_for_cancel(payload.seconds)
    tally.ended(str(ctx.job_id))
