"""Handlers that put things into the background; and a worker's end that breaks, where that is asked for."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from turno.handlers import JobContext, job_type
from workers.consumer import Consumer


class Background(BaseModel):
    """`tell` is a file for pids; `hold` seconds after that the handler ends."""

    tell: str
    hold: float = 0.0


def put(payload: Background, **popen: Any) -> None:
    """Start a program in a session of its own, and tell its pid; nobody waits for it."""
    command = f"setsid sleep 600 & echo $! >> {payload.tell}"
    subprocess.run(["/bin/sh", "-c", command], check=True, **popen)


@job_type("background.async")
async def background_async(ctx: JobContext, payload: Background) -> dict[str, int]:
    """Starts one program that keeps the environment, and one that does not."""
    put(payload)
    put(payload, env={})
    await ctx.asleep(payload.hold)
    return {}


@job_type("background.thread", isolation="thread")
def background_thread(ctx: JobContext, payload: Background) -> dict[str, int]:
    """Starts one program that keeps the environment, and one that does not."""
    put(payload)
    put(payload, env={})
    ctx.sleep(payload.hold)
    return {}


@job_type("background.process", isolation="process", max_attempts=9)
def background_process(ctx: JobContext, payload: Background) -> dict[str, int]:
    """Starts a program, and forks a daemon that shakes off all that it can."""
    put(payload)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with Path(payload.tell).open("a") as tell:
                tell.write(f"{os.getpid()}\n")
            os.closerange(0, 1024)
            time.sleep(600)
        os._exit(0)
    os.wait()
    ctx.sleep(payload.hold)
    return {}


@job_type("background.line", isolation="thread")
def close_the_line(ctx: JobContext, payload: Background) -> dict[str, int]:
    """Closes the worker's line to its supervisor."""
    variables = Path("/proc/self/environ").read_bytes().split(b"\0")
    os.close(int(next(v for v in variables if v.startswith(b"TURNO_SUPERVISOR_FD=")).partition(b"=")[2]))
    return {}


async def broken(*_: object) -> bool:
    raise RuntimeError("the end is broken")


if "PROBE_BROKEN_END" in os.environ and "runworker" in sys.argv:
    Consumer.finish = broken  # type: ignore[method-assign]
