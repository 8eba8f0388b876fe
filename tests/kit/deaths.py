"""Handlers that take processes down, and what that leaves of others is looked at."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tests.kit.handlers import write
from turno.handlers import JobContext, job_type


class Blow(BaseModel):
    """SIGKILLs the process that runs it, after `hold` seconds, and after the file `when` is there."""

    key: str = ""
    hold: float = 0.0
    when: str = ""
    mebibytes: int = 0


async def strike(ctx: JobContext, payload: Blow) -> Any:
    write("start", payload.key, ctx)
    await ctx.asleep(payload.hold)
    while payload.when and not Path(payload.when).exists():
        await ctx.asleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)


@job_type("deaths.async", max_attempts=9)
async def deaths_async(ctx: JobContext, payload: Blow) -> Any:
    """Kills its worker."""
    return await strike(ctx, payload)


@job_type("deaths.process", max_attempts=9)
def deaths_process(ctx: JobContext, payload: Blow) -> Any:
    """Kills the child process that it runs in, after it took so much memory."""
    write("start", payload.key, ctx)
    taken = bytearray(os.urandom(1)) * (payload.mebibytes << 20)
    time.sleep(payload.hold)
    os.kill(os.getpid(), signal.SIGKILL)
    return len(taken)
