"""Handlers that look at the process they run in, or change it."""

import ctypes
import faulthandler
import gc
import io
import multiprocessing
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from turno.handlers import JobContext, job_type

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]


@job_type("iso.memory")
def memory(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Takes `bytes` of memory, under a limit when there is one; or is killed as the system does it."""
    if payload.get("limit"):
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + payload["limit"], resource.RLIM_INFINITY))
    block = bytearray(payload["bytes"])
    block[::4096] = b"x" * len(block[::4096])
    if payload.get("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"pid": os.getpid()}


class _Equal:
    """A signal handler that is equal to all others."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __call__(self, *_: object) -> None: ...


@job_type("iso.dirty")
def dirty(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Changes the process in the ways that `ways` names."""
    ways = payload["ways"]
    if "cwd" in ways:
        os.chdir("/")
    if "umask" in ways:
        os.umask(0)
    if "environment" in ways:
        os.environ["ISO_DIRT"] = "yes"
        os.environ.pop("PATH", None)
    if "signals" in ways:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.alarm(1)
    if "equal" in ways:
        signal.signal(signal.SIGTERM, _Equal())
        signal.signal(signal.SIGUSR2, _Equal())
    if "streams" in ways:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
        sys.setrecursionlimit(5000)
        socket.setdefaulttimeout(0.001)
    if "faulthandler" in ways:  # C code in the place of our handler, which Python does not see
        faulthandler.register(signal.SIGUSR1)
        faulthandler.register(signal.SIGUSR2)
    if "dump" in ways:
        faulthandler.dump_traceback_later(0.3, exit=True)
    if "c_signals" in ways:
        ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(1))
        ctypes.CDLL(None).signal(int(signal.SIGPROF), ctypes.c_void_p(1))
    if "blocked" in ways:  # a signal that ends a process waits to be let in
        signal.signal(signal.SIGUSR2, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        os.kill(os.getpid(), signal.SIGUSR2)
    if "putenv" in ways:
        os.putenv("ISO_C_DIRT", "yes")
        os.unsetenv("PATH")
    if "interpreter" in ways:
        gc.disable()
        gc.set_threshold(1)
        sys.setswitchinterval(1.5)
        sys.set_int_max_str_digits(0)
        sys.excepthook = sys.unraisablehook = threading.excepthook = print  # type: ignore[assignment]
        threading.settrace(print)
    if "nonblock" in ways:
        os.set_blocking(1, False)
        os.set_blocking(2, False)
    if "detach" in ways:
        globals()["kept_stream"] = io.TextIOWrapper(sys.stdout.detach())
    if "reconfigure" in ways:
        sys.stdout.reconfigure(encoding="latin-1")  # type: ignore[attr-defined]
    if "closed" in ways:
        sys.stderr.close()
    if "random" in ways:
        random.seed(42)
    if "language" in ways:
        from django.utils import translation

        translation.activate("pt-br")
    if "thread" in ways:
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    if "limits" in ways:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
    if "stdout" in ways:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if "files" in ways:
        for _ in range(200):
            os.open(os.devnull, os.O_RDONLY)
    if "process" in ways:
        subprocess.Popen(SLEEP)
    if "kill" in ways:
        os.kill(os.getpid(), signal.SIGKILL)
    if "zombie" in ways:
        globals()["kept"] = subprocess.Popen([sys.executable, "-S", "-c", ""])
        os.waitid(os.P_PID, globals()["kept"].pid, os.WEXITED | os.WNOWAIT)
    if "pool" in ways:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
    return look()


@job_type("iso.look")
def look_(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """What the process looks like."""
    return look()


def look() -> dict[str, Any]:
    from django.utils import translation

    umask = os.umask(0o77)
    os.umask(umask)
    return {
        "pid": os.getpid(),
        "cwd": os.getcwd(),  # noqa: PTH109
        "umask": umask,
        "dirt": os.environ.get("ISO_DIRT"),
        "path": os.environ.get("PATH"),
        "term": str(signal.getsignal(signal.SIGTERM)),
        "chld": str(signal.getsignal(signal.SIGCHLD)),
        "usr1": callable(signal.getsignal(signal.SIGUSR1)),
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "alarm": signal.getitimer(signal.ITIMER_REAL)[0],
        "stdout": sys.stdout is sys.__stdout__ or getattr(sys.stdout, "name", "") != os.devnull,
        "recursion": sys.getrecursionlimit(),
        "timeout": socket.getdefaulttimeout(),
        "random": random.random(),
        "language": translation.get_language(),
        "session": os.getsid(0),
        "caught": Path("/proc/self/status").read_text().partition("SigBlk:")[2].partition("CapInh:")[0],
        "programs": sorted(set(subprocess.check_output(["/usr/bin/env"]).decode().split("\n")) - {""}),
        "collector": [gc.isenabled(), gc.get_threshold()],
        "switch": sys.getswitchinterval(),
        "digits": sys.get_int_max_str_digits(),
        "hooks": [str(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook)],
        "traced": threading.gettrace() is None,
        "blocking": [os.get_blocking(number) for number in (0, 1, 2)],
        "stdin": os.readlink("/proc/self/fd/0"),  # noqa: PTH115
    }


@job_type("iso.orm")
def orm(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Asks the database."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return {"pid": os.getpid(), "backend": cursor.fetchone()[0]}


@job_type("iso.ids")
def ids(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """What must differ between processes."""
    from jobs.ids import new_id
    from workers.execution import _rng

    time.sleep(0.05)
    return {"pid": os.getpid(), "id": str(new_id()), "random": random.random(), "jitter": _rng.random()}


KEPT: list[bytes] = []


@job_type("iso.grow")
def grow(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Keeps `bytes` for good."""
    KEPT.append(os.urandom(payload["bytes"]))
    return {"pid": os.getpid()}


@job_type("iso.pool", timeout=60)
def pool(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Ends a process of its own by SIGTERM, as `multiprocessing` does; its exit code."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    process.terminate()
    process.join(60)
    return {"exit": process.exitcode}
