"""Handlers that say very much, start very much, or fail in words of their own, in each isolation."""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from jobs.enqueue import JobRequest, enqueue_many
from tests.kit.handlers import write
from turno.handlers import JobContext, job_type


class Words(BaseModel):
    """`calls` of progress and of the log, spread over at least `seconds`; `odd` names what is returned in the end."""

    key: str = ""
    calls: int = 0
    lines: int = 0
    seconds: float = 0.0
    odd: str = ""


def say(ctx: JobContext, payload: Words, number: int) -> None:
    ctx.report_progress(100 * number / payload.calls, f"step {number}")
    if number < payload.lines:
        ctx.log(f"line {number}")


def returned(payload: Words) -> Any:
    odd: dict[str, Any] = {"object": object(), "nan": float("nan"), "bytes": b"x", "long": "x" * 300_000}
    return {"rows": [1, odd[payload.odd]]} if payload.odd in odd else {"said": payload.calls}


def speak(ctx: JobContext, payload: Words) -> Any:
    """What the plain handlers do."""
    write("start", payload.key, ctx)
    until = time.monotonic() + payload.seconds
    for number in range(payload.calls):
        say(ctx, payload, number)
    while time.monotonic() < until:
        ctx.report_progress(99)
    return returned(payload)


@job_type("loud.async", max_attempts=3)
async def loud_async(ctx: JobContext, payload: Words) -> Any:
    """Says very much, on an event loop that it shares."""
    write("start", payload.key, ctx)
    until = time.monotonic() + payload.seconds
    for number in range(payload.calls):
        say(ctx, payload, number)
        if number % 100 == 0:
            await asyncio.sleep(0)
    while time.monotonic() < until:
        ctx.report_progress(99)
        await asyncio.sleep(0)
    return returned(payload)


@job_type("loud.thread", max_attempts=3, isolation="thread")
def loud_thread(ctx: JobContext, payload: Words) -> Any:
    """Says very much, in a thread."""
    return speak(ctx, payload)


@job_type("loud.process", max_attempts=3)
def loud_process(ctx: JobContext, payload: Words) -> Any:
    """Says very much, in a child process."""
    return speak(ctx, payload)


class Fan(BaseModel):
    """How many jobs are started, by `many` in one go."""

    count: int
    many: int = 1000


def memory(pid: int | str = "self") -> int:
    """Bytes of a process in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@job_type("loud.fan_out", timeout=600)
def fan_out(ctx: JobContext, payload: Fan) -> Any:
    """Enqueues many jobs from within one, and says by how much its process grew."""
    before = memory()
    for start in range(0, payload.count, payload.many):
        some = range(start, min(start + payload.many, payload.count))
        enqueue_many([JobRequest("probe.async", {"key": f"fan-{number}"}) for number in some])
        ctx.report_progress(100 * start / payload.count)
    return {"grown": memory() - before}


ORDINALS = ("none", "first", "second", "third", "fourth", "fifth")


def fails(ctx: JobContext, payload: Words) -> Any:
    write("start", payload.key, ctx)
    raise ValueError(f"the {ORDINALS[ctx.execution]} time")


@job_type("loud.fails_async", max_attempts=3)
async def fails_async(ctx: JobContext, payload: Words) -> Any:
    """Fails, and says which time it is."""
    return fails(ctx, payload)


@job_type("loud.fails_thread", max_attempts=3, isolation="thread")
def fails_thread(ctx: JobContext, payload: Words) -> Any:
    """The same in a thread."""
    return fails(ctx, payload)


@job_type("loud.fails_process", max_attempts=3)
def fails_process(ctx: JobContext, payload: Words) -> Any:
    """The same in a child process."""
    return fails(ctx, payload)


@job_type("loud.broken_threads", isolation="thread")
def broken_threads(ctx: JobContext, payload: Words) -> Any:
    """Has threads of its own that end badly."""
    write("start", payload.key, ctx)
    for end in (sys.exit, lambda: 1 / 0):
        one = threading.Thread(target=end)
        one.start()
        one.join()
    return {"said": 0}
