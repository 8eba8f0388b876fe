"""The handlers of benchmarks: they do nothing, at once or for as long as they are told."""

from pydantic import BaseModel

from turno.handlers import JobContext, job_type


@job_type("benchmark.nothing")
async def nothing(ctx: JobContext) -> None:
    """Does nothing."""


class Pause(BaseModel):
    """How long to do nothing, in seconds."""

    seconds: float = 0.0


@job_type("benchmark.pause")
async def pause(ctx: JobContext, payload: Pause) -> None:
    """Does nothing for a while."""
    await ctx.asleep(payload.seconds)
