"""Handlers that come back into the code that runs them: by destructors, signal handlers, timers, and copies."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from jobs.errors import JobCancelled, JobTimeout
from turno.handlers import JobContext, job_type
from workers.protocol import CHILD_VARIABLE


def _stillborn() -> None:
    """While the file named in ISO_STILLBORN is there, no child outlives the fork that made it."""
    file = os.environ.get("ISO_STILLBORN", "")
    if file and CHILD_VARIABLE in os.environ and Path(file).exists():
        with Path(file).open("a") as forks:
            forks.write("x")
        os._exit(9)


os.register_at_fork(after_in_child=_stillborn)


class Speaks:
    """Garbage that only the collector finds, and that says something when it goes."""

    def __init__(self, ctx: JobContext) -> None:
        self.me, self.ctx = self, ctx

    def __del__(self) -> None:
        self.ctx.log("gone")
        self.ctx.logger.info("gone")
        self.ctx.report_progress(50, "gone")


@job_type("iso.destructors", timeout=20)
def destructors(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Leaves garbage that speaks while it speaks itself."""
    gc.set_threshold(20)
    for number in range(payload["lines"]):
        Speaks(ctx)
        ctx.log(f"line {number}")
    return {}


@job_type("iso.async_destructors", timeout=20)
async def async_destructors(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """The same on the loop of async handlers: any thread of the process may collect it."""
    for number in range(payload["lines"]):
        Speaks(ctx)
        ctx.log(f"line {number}")
        if number % 50 == 0:
            await asyncio.sleep(0)
    return {}


@job_type("iso.ticks", timeout=20)
def ticks(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Speaks in a signal handler while it speaks itself; each tick sets the next."""
    found = []

    def tick(*_: object) -> None:
        found.append(len(found))
        ctx.log("tick")
        signal.setitimer(signal.ITIMER_REAL, 0.003)

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.003)
    for number in range(payload["lines"]):
        ctx.log(f"line {number}")
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"ticks": len(found)}


class Out(Exception):
    """Time is over."""


@job_type("iso.breaks", timeout=20)
def breaks(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Breaks its own long lines off, by a signal handler that raises; what it raised after its return is its own."""

    def out(*_: object) -> None:
        raise Out

    signal.signal(signal.SIGALRM, out)
    broken = 0
    for _ in range(payload.get("rounds", 0)):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0015)
            while True:
                ctx.log("x" * 8000)
        except Out:
            broken += 1
    if payload.get("after"):
        signal.setitimer(signal.ITIMER_REAL, payload["after"], payload["after"])
    return {"broken": broken}


@job_type("iso.raises_after")
def raises_after(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Returns, and raises at an instruction of who called it: as its signal handler can, as long as that is there."""
    left = payload["at"]

    def mine(*_: object) -> None:
        """Its signal handler."""

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left < 0 and signal.getsignal(signal.SIGALRM) is mine:
            raise Out
        return trace

    signal.signal(signal.SIGALRM, mine)
    caller = sys._getframe().f_back
    while caller is not None:
        caller.f_trace, caller.f_trace_opcodes = trace, True
        caller = caller.f_back
    sys.settrace(trace)
    return {}


@job_type("iso.copy")
def copy(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Forks a copy of itself that ends as `how` says; how the system saw it end."""
    with Path(payload["tell"]).open("a") as file:
        file.write("begun\n")
    pid = os.fork()
    if pid == 0:
        return end_copy(payload["how"])
    return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}


@job_type("iso.async_copy")
async def async_copy(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """The same on the loop of async handlers."""
    await asyncio.sleep(0)
    pid = os.fork()
    if pid == 0:
        if payload["how"] == "waits":
            await asyncio.sleep(0.2)
        return end_copy(payload["how"])
    return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}


@job_type("iso.thread_copy", isolation="thread")
def thread_copy(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """The same in a thread of the worker."""
    pid = os.fork()
    if pid == 0:
        return end_copy(payload["how"])
    return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}


def end_copy(how: str) -> Any:
    if how == "exit":
        sys.exit(3)
    if how == "text":
        sys.exit("a word")
    if how == "transient":
        raise ConnectionError("it may work in a moment")
    if how == "raise":
        raise ValueError("in a copy")
    return {"copy": True}


@job_type("iso.litter")
def litter(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Leaves somebody behind who goes on writing to its folder: a process, or a thread."""
    folder = ctx.folder
    Path(payload["tell"]).write_text(f"{folder}\n")
    if payload["who"] == "process":
        subprocess.Popen(["sh", "-c", f"while :; do mkdir -p {folder}/d; : > {folder}/d/x; done"])
    else:

        def write() -> None:
            while True:
                (folder / "d").mkdir(parents=True, exist_ok=True)
                time.sleep(0.001)

        threading.Thread(target=write, daemon=True).start()
    while not (folder / "d").exists():
        time.sleep(0.01)


@job_type("iso.clears_up")
def clears_up(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Hears the word "stop" in a call of its context, and clears up for a moment."""
    said = Path(payload["tell"])
    try:
        said.write_text("begun\n")
        if payload["how"] == "sleeps":
            ctx.sleep(60)
        while True:
            time.sleep(0.01)
            ctx.raise_if_cancelled()
    except (JobTimeout, JobCancelled):
        try:
            until = time.monotonic() + 1.3  # longer than the moment after which a cancel is raised
            while time.monotonic() < until:
                sum(range(1000))
            said.write_text("cleared up\n")
        except BaseException as error:
            said.write_text(f"{type(error).__name__} again\n")
            raise
        raise


@job_type("iso.large_child")
def large_child(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Starts a program that takes `bytes` of memory, and waits for it."""
    code = f"b = bytearray({payload['bytes']}); b[::4096] = b'x' * len(b[::4096])"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)
    return {"pid": os.getpid()}
