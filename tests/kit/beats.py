"""Handlers that show when they run: a line `beat key execution pid boottime` every 20 ms, and words to the database."""

import asyncio
import subprocess
import sys
import time
from typing import Any

from pydantic import BaseModel

from tests.kit.handlers import write
from turno.handlers import JobContext, job_type

PAUSE = 0.02  # seconds between two lines
SAY = 5  # beats between two words to the database


class Beat(BaseModel):
    """Beats for `hold` seconds; `deaf` ones take no notice of being asked to stop."""

    key: str = ""
    hold: float = 60.0
    deaf: bool = False


def beat(ctx: JobContext, payload: Beat, count: int) -> None:
    write("beat", payload.key, ctx)
    if count % SAY == 0:
        ctx.report_progress(min(99, count), f"execution {ctx.execution}")
        ctx.log(f"beat {count}")


async def beat_async(ctx: JobContext, payload: Beat) -> Any:
    write("start", payload.key, ctx)
    count, end = 0, time.monotonic() + payload.hold
    while time.monotonic() < end:
        beat(ctx, payload, count := count + 1)
        try:
            await asyncio.sleep(PAUSE)
        except asyncio.CancelledError:
            if not payload.deaf:
                raise
    write("end", payload.key, ctx)
    return {"execution": ctx.execution}


def beat_plain(ctx: JobContext, payload: Beat) -> Any:
    write("start", payload.key, ctx)
    count, end = 0, time.monotonic() + payload.hold
    while time.monotonic() < end:
        try:
            beat(ctx, payload, count := count + 1)
            time.sleep(PAUSE) if payload.deaf else ctx.sleep(PAUSE)
        except BaseException:
            if not payload.deaf:
                raise
    write("end", payload.key, ctx)
    return {"execution": ctx.execution}


@job_type("beats.async", max_attempts=9)
async def beats_async(ctx: JobContext, payload: Beat) -> Any:
    """Beats on an event loop."""
    return await beat_async(ctx, payload)


@job_type("beats.thread", max_attempts=9, isolation="thread")
def beats_thread(ctx: JobContext, payload: Beat) -> Any:
    """Beats in a thread."""
    return beat_plain(ctx, payload)


@job_type("beats.process", max_attempts=9, isolation="process")
def beats_process(ctx: JobContext, payload: Beat) -> Any:
    """Beats in a child process."""
    return beat_plain(ctx, payload)


# What a handler may start: a program in a session of its own, which the handler's end does not end.
OFFSPRING = """
import os, sys, time
key, execution = sys.argv[1:]
while True:
    line = f"beat {key} {execution} {os.getpid()} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\\n"
    file = os.open(os.environ["PROBE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)
    time.sleep(0.02)
"""


@job_type("beats.offspring", max_attempts=9, isolation="process")
def beats_offspring(ctx: JobContext, payload: Beat) -> Any:
    """Starts a program that beats, and waits."""
    write("start", payload.key, ctx)
    command = [sys.executable, "-c", OFFSPRING, payload.key, str(ctx.execution)]
    with subprocess.Popen(command, start_new_session=True):
        ctx.log("it has one")
        ctx.sleep(payload.hold)
    return {}


@job_type("once.async", at_most_once=True)
async def once_async(ctx: JobContext, payload: Beat) -> Any:
    """Beats on an event loop, at most once."""
    return await beat_async(ctx, payload)


@job_type("once.thread", at_most_once=True, isolation="thread")
def once_thread(ctx: JobContext, payload: Beat) -> Any:
    """Beats in a thread, at most once."""
    return beat_plain(ctx, payload)


@job_type("once.process", at_most_once=True, isolation="process")
def once_process(ctx: JobContext, payload: Beat) -> Any:
    """Beats in a child process, at most once."""
    return beat_plain(ctx, payload)
