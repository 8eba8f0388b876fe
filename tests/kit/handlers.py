"""Handlers driven by their payload. Each writes `start …` and `end …` with O_APPEND to the file PROBE_LOG names:

    start key execution pid boottime

The number of start lines is the only count of real executions.
"""

import asyncio
import os
import time
from typing import Any

from pydantic import BaseModel

from turno.handlers import JobContext, PermanentJobError, Snooze, TransientJobError, job_type


class Mark(BaseModel):
    """`hold` and `spin` in seconds; `fail` names the error to end with."""

    key: str = ""
    hold: float = 0.0
    spin: float = 0.0
    fail: str = ""
    result: Any = None
    ignore_cancel: bool = False
    snooze: float | None = None


def write(word: str, key: str, ctx: JobContext) -> None:
    """One line, written whole by one system call."""
    path = os.environ.get("PROBE_LOG")
    if path:
        line = (
            f"{word} {key or ctx.job_id} {ctx.execution} {os.getpid()} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\n"
        )
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class Bare(BaseException):
    """An error that is no Exception."""


ERRORS: dict[str, BaseException] = {
    "error": ValueError("a bad value"),
    "permanent": PermanentJobError("it will never work"),
    "transient": TransientJobError("it may work in a moment"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "base": Bare("bare"),
    "generator_exit": GeneratorExit(),
    "cancelled_error": asyncio.CancelledError(),
    "memory": MemoryError(),
}


def conclude(ctx: JobContext, mark: Mark) -> Any:
    if mark.snooze is not None and ctx.execution == 1:
        return Snooze(mark.snooze)
    if mark.fail:
        raise ERRORS[mark.fail].with_traceback(None)
    return {"key": mark.key, "result": mark.result}


@job_type("probe.async", max_attempts=5)
async def probe_async(ctx: JobContext, payload: Mark) -> Any:
    """Marks its start and end, on an event loop."""
    write("start", payload.key, ctx)
    until = time.monotonic() + payload.spin
    while time.monotonic() < until:
        pass
    if payload.ignore_cancel:
        end = time.monotonic() + payload.hold
        while time.monotonic() < end:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
    elif payload.hold:
        await ctx.asleep(payload.hold)
    outcome = conclude(ctx, payload)
    write("end", payload.key, ctx)
    return outcome


def plain(ctx: JobContext, payload: Mark) -> Any:
    """What the plain handlers do, wherever they run."""
    write("start", payload.key, ctx)
    until = time.monotonic() + payload.spin
    while time.monotonic() < until:
        pass
    if payload.ignore_cancel:
        time.sleep(payload.hold)
    elif payload.hold:
        ctx.sleep(payload.hold)
    outcome = conclude(ctx, payload)
    write("end", payload.key, ctx)
    return outcome


@job_type("probe.thread", max_attempts=5, isolation="thread")
def probe_thread(ctx: JobContext, payload: Mark) -> Any:
    """Marks its start and end, in a thread."""
    return plain(ctx, payload)


@job_type("probe.process", max_attempts=5)
def probe_process(ctx: JobContext, payload: Mark) -> Any:
    """Marks its start and end, in a child process."""
    return plain(ctx, payload)


@job_type("probe.process_fresh", max_attempts=5, isolation="process", fresh=True)
def probe_process_fresh(ctx: JobContext, payload: Mark) -> Any:
    """Marks its start and end, in a child process of its own."""
    return plain(ctx, payload)


@job_type("probe.once", at_most_once=True)
async def probe_once(ctx: JobContext, payload: Mark) -> Any:
    """Runs at most once."""
    return await probe_async(ctx, payload)


@job_type("probe.talk")
async def probe_talk(ctx: JobContext, payload: Mark) -> Any:
    """Reports progress, stages and lines."""
    write("start", payload.key, ctx)
    ctx.report_progress(40, "first half")
    ctx.log("one line")
    if payload.hold:
        await ctx.asleep(payload.hold)
    ctx.report_progress(80, "second half")
    ctx.log("another line", level="warning")
    return {"said": 2}


@job_type("probe.timeout", timeout=0.3, max_attempts=1)
async def probe_timeout(ctx: JobContext, payload: Mark) -> Any:
    """Has a limit of 0.3 s."""
    write("start", payload.key, ctx)
    await asyncio.sleep(payload.hold)
    return {}


@job_type("probe.odd_result")
async def probe_odd_result(ctx: JobContext, payload: Mark) -> Any:
    """Returns what JSON has no form for."""
    write("start", payload.key, ctx)
    return {"deep": [1, object()]}


@job_type("probe.orm_async")
async def probe_orm_async(ctx: JobContext, payload: Mark) -> Any:
    """Asks the database through the ORM, on an event loop."""
    from jobs.models import Job

    write("start", payload.key, ctx)
    return {"jobs": await Job.objects.acount()}


@job_type("probe.orm_thread", isolation="thread")
def probe_orm_thread(ctx: JobContext, payload: Mark) -> Any:
    """Asks the database through the ORM, in a thread."""
    from jobs.models import Job

    write("start", payload.key, ctx)
    return {"jobs": Job.objects.count()}


@job_type("probe.transaction", isolation="thread")
def probe_transaction(ctx: JobContext, payload: Mark) -> Any:
    """Keeps a transaction open from its first line to its last."""
    from django.db import transaction

    from jobs.models import Job

    with transaction.atomic():
        Job.objects.exists()
        return plain(ctx, payload)


@job_type("probe.lines")
async def probe_lines(ctx: JobContext, payload: Mark) -> Any:
    """Says a line every 50 ms for `hold` seconds, and returns how many."""
    write("start", payload.key, ctx)
    said, end = 0, time.monotonic() + payload.hold
    while time.monotonic() < end:
        said += 1
        ctx.log(f"line {said}")
        await ctx.asleep(0.05)
    return {"said": said}


@job_type("probe.forgets_transaction", isolation="thread")
def probe_forgets_transaction(ctx: JobContext, payload: Mark) -> Any:
    """Opens a transaction and never ends it."""
    from django.db import transaction

    write("start", payload.key, ctx)
    transaction.atomic().__enter__()
    return {}
