"""Handlers that behave badly, or look at the process they run in."""

import asyncio
import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.isolation import handlers_hostile, handlers_state  # noqa: F401  (register their types)
from turno.handlers import JobContext, job_type

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]


@job_type("iso.echo")
def echo(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Gives back what it got, and where it ran."""
    return {"pid": os.getpid(), "given": payload}


@job_type("iso.fresh", fresh=True)
def fresh(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Runs in a process of its own."""
    return {"pid": os.getpid()}


@job_type("iso.hold", timeout=600)
def hold(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Runs for `seconds`: sleeping where it can be told to stop, deaf, busy, or in a C call that never returns."""
    tell(payload, os.getpid())
    until = time.monotonic() + payload.get("seconds", 60)
    how = payload.get("how", "asks")
    while time.monotonic() < until:
        if how == "asks":
            ctx.sleep(0.05)
        elif how == "sleeps":
            time.sleep(60)
        elif how == "busy":
            sum(range(10_000))
        elif how == "deaf":
            try:
                time.sleep(0.05)
            except BaseException:  # noqa: BLE001, S112
                continue
        elif how == "stuck":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            ctypes.PyDLL(None).sleep(60)  # holds the interpreter's lock
    return {"pid": os.getpid()}


@job_type("iso.family", timeout=600)
def family(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Starts processes: a child, its child, and its child; in sessions of their own, deaf, or left behind."""
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "depth, setsid, path = int(sys.argv[1]), sys.argv[2] == '1', sys.argv[3]\n"
        "if setsid: os.setsid()\n"
        "open(path, 'a').write(f'{os.getpid()}\\n')\n"
        "if depth and os.fork(): sys.exit() if sys.argv[4] == '1' else time.sleep(3600)\n"
        "elif depth: os.execv(sys.executable, [sys.executable, '-S', '-c', sys.argv[5], str(depth-1), *sys.argv[2:]])\n"
        "time.sleep(3600)\n"
    )
    words = [str(payload.get("depth", 2)), str(int(payload.get("setsid", False))), payload["tell"]]
    orphaned = str(int(payload.get("orphaned", False)))
    subprocess.Popen([sys.executable, "-S", "-c", code, *words, orphaned, code])
    if payload.get("leave"):
        until = time.monotonic() + 20
        while time.monotonic() < until and len(told(payload)) <= payload.get("depth", 2):
            time.sleep(0.01)
        return {"pid": os.getpid()}
    while True:
        time.sleep(60)


@job_type("iso.end")
def end(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Ends its process in one of many ways, or raises what no handler should."""
    tell(payload, os.getpid())
    how = payload["how"]
    ctx.log("last words")
    ctx.report_progress(30, "nearly")
    if how == "exit":
        os._exit(payload.get("code", 3))
    if how == "signal":
        os.kill(os.getpid(), payload["signal"])
        time.sleep(60)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "group":
        os.killpg(0, signal.SIGKILL)
    if how == "exec":
        os.execv(SLEEP[0], SLEEP)  # noqa: S606
    if how == "close":
        os.closerange(0, 4096)
    if how == "deafen":  # the socket of its watchdog alone
        for number in range(3, 64):
            try:
                with socket.socket(fileno=os.dup(number)) as found:
                    if found.type == socket.SOCK_SEQPACKET:
                        os.close(number)
            except OSError:
                continue
        time.sleep(60)
    if how == "reuse":
        os.closerange(3, 4096)
        for _ in range(40):
            os.open(payload["file"], os.O_RDWR | os.O_CREAT)
    if how == "garbage":
        for number in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, b"\xff\x00garbage, not a frame" * 1000)
            except OSError:
                continue
        time.sleep(60)
    if how == "fork":
        for _ in range(3):
            if os.fork() == 0:
                return {"copy": True}
        return {"pid": os.getpid()}
    return {"pid": os.getpid()}


@job_type("iso.chatter")
def chatter(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Talks without a pause, long lines and short ones, from two threads, until it is told to stop."""
    other = threading.Thread(target=lambda: [ctx.log("aside") for _ in range(200)])
    other.start()
    try:
        while True:
            ctx.log("x" * 5000)
            ctx.log("y")
            ctx.report_progress(time.monotonic() % 100, "on")
    finally:
        other.join()


class Two(Exception):
    """An exception that can't be made from its arguments, nor pickled."""

    def __init__(self, a: object, b: object) -> None:
        super().__init__(a)
        self.lock, self.generator, self.socket = threading.Lock(), (x for x in ()), socket.socket()


class Bare(BaseException):
    """No Exception."""


@job_type("iso.raise")
def raise_(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Raises what `what` names."""
    what = payload["what"]
    if what == "chain":
        error: Exception = ValueError("the first")
        for number in range(2000):
            try:
                raise KeyError(number) from error
            except KeyError as raised:
                error = raised
        raise error
    errors: dict[str, BaseException] = {
        "two": Two(1, 2),
        "group": ExceptionGroup("many", [ValueError(n) for n in range(1000)]),
        "interrupt": KeyboardInterrupt(),
        "exit0": SystemExit(0),
        "exit3": SystemExit(3),
        "generator": GeneratorExit(),
        "cancelled": asyncio.CancelledError(),
        "bare": Bare("bare"),
        "memory": MemoryError(),
    }
    raise errors[what]


@job_type("iso.print")
def print_(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Prints much, and what is no text."""
    out, err = payload.get("out", 0), payload.get("err", 0)
    while out > 0 or err > 0:
        os.write(1, b"o" * min(65536, max(out, 0)))
        os.write(2, b"e" * min(65536, max(err, 0)))
        out, err = out - 65536, err - 65536
    for number in (1, 2):
        os.write(number, b"\x94\xff\x00\x1b[2J\r\n" + "é".encode()[:1])
    print("x" * payload.get("line", 0))  # noqa: T201
    return {"pid": os.getpid()}


@job_type("iso.talk")
def talk(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Says `lines` lines and `steps` steps of progress, and returns `size` characters."""
    for number in range(payload.get("lines", 0)):
        ctx.log(f"line {number} \ud800 \x00 é")
    for number in range(payload.get("steps", 0)):
        ctx.report_progress(100 * number / payload["steps"], f"step {number}")
    if payload.get("file"):
        (ctx.folder / "a.txt").write_text("kept while it runs")
        tell(payload, ctx.folder)
        time.sleep(payload.get("seconds", 0))
    return {"text": "é" * payload.get("size", 0), "folder": str(ctx.folder) if payload.get("file") else ""}


@job_type("iso.children")
def children(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Starts two programs, one in a session of its own, and leaves them."""
    for session in (False, True):
        subprocess.Popen(["sleep", "3600"], start_new_session=session)
    ctx.sleep(payload["seconds"])


@job_type("iso.transient")
def transient(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Fails twice by what passes by itself."""
    path = Path(payload["tell"])
    with path.open("a") as file:
        file.write("try\n")
    if len(path.read_text().splitlines()) < 3:
        raise ConnectionError("it may work in a moment")
    return {}


@job_type("iso.kill_parent")
def kill_parent(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Kills, or stops, the process that started its own."""
    os.kill(os.getppid(), payload["signal"])
    time.sleep(payload.get("seconds", 60))
    return {"pid": os.getpid()}


def tell(payload: dict[str, Any], what: object) -> None:
    if payload.get("tell"):
        with Path(payload["tell"]).open("a") as file:
            file.write(f"{what}\n")


def told(payload: dict[str, Any]) -> list[str]:
    path = Path(payload["tell"])
    return path.read_text().splitlines() if path.exists() else []
