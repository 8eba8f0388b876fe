"""What a warm child puts back between two jobs, and what makes it end instead.

First of all, the moment a handler has ended (`quiet`): its timers are stopped, and signal handlers are ours again.

Then, put back since it is cheap and exact: working directory, umask, environment variables (Python's and the C
library's), signal mask, actions that C code or `faulthandler` gave to signals, `faulthandler`'s delayed dump, Python's
standard streams and hooks for errors, whether descriptors 0 to 2 block, recursion limit, switch interval, settings of
the collector, the longest text of a number, default socket timeout, tracing, the seed of `random`. (Context variables,
the active language among them, need nothing: each job runs in a copy of the context.)

The child ends, and the next job gets another, when something is left that can't be put back with certainty: threads,
standard streams that were closed, detached or set to something else, descriptors 0 to 2 that lead elsewhere, actions of
signals that would not change, resource limits, niceness or identity, more open files than before, or when it has grown
by more memory than it may. Not looked at: modules that were imported or changed, globals, locale, warning filters,
caches. They are what makes a child warm; a handler that changes the process for good declares `fresh=True`.
"""

import gc
import os
import random
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from workers.isolation.environment import Environment
from workers.isolation.looks import Look, look
from workers.isolation.signals import Signals
from workers.streams import NUMBERS, block_streams, blocking_streams

MORE_FILES = 64
SEED = 16  # bytes: `random` by itself takes 2,500 of the system's
FILES = "/proc/self/fd"
THREADS_END = 0.1  # seconds for a handler's last threads to end
_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
# Settings of the interpreter: how each is read and written.
_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.getswitchinterval, sys.setswitchinterval),
    (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    (gc.get_threshold, lambda thresholds: gc.set_threshold(*thresholds)),
    (gc.isenabled, lambda enabled: gc.enable() if enabled else gc.disable()),
    (gc.get_debug, gc.set_debug),
    (socket.getdefaulttimeout, socket.setdefaulttimeout),
)
_HOOKS = ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook"))


class Baseline:
    """A child as it is before its first job. Belongs to the main thread."""

    def __init__(self, growth: int) -> None:
        self._max_memory = look().memory + growth  # what was loaded before the fork is no leak of the child's
        self._folder = _folder()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._environment = Environment()
        self._signals = Signals()
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._stream_settings = [_stream_settings(stream) for stream in self._streams]
        self._blocking = blocking_streams()
        self._settings = [read() for read, _ in _SETTINGS]
        self._hooks = [getattr(module, name) for module, name in _HOOKS]
        self._collected = list(gc.callbacks)
        self._traces: tuple[Any, Any] = threading.gettrace(), threading.getprofile()
        self._fixed = _fixed()
        self._files = _files()
        self._threads = frozenset(sys._current_frames())

    def quiet(self) -> None:
        """A handler has ended: nothing that it set up breaks into what follows."""
        self._signals.quiet()

    def put_back(self, seen: Look) -> str | None:
        """Put back what can be; why the child must end, if it must: one word for the log."""
        self._put_back_interpreter()
        os.umask(self._umask)
        self._environment.put_back()
        random.seed(int.from_bytes(os.urandom(SEED)))
        block_streams(self._blocking)
        if self._folder and _folder() != self._folder:
            try:
                os.chdir(self._folder)
            except OSError:
                return "folder"
        return next(self._reasons(seen), None)

    def _reasons(self, seen: Look) -> Iterator[str]:
        """What is left that can't be put back, looked for until the first is found."""
        if not self._put_back_streams():
            yield "streams"
        if not self._signals.put_back(seen):
            yield "signals"
        if not self._threads_ended():
            yield "threads"
        if _fixed() != self._fixed:
            yield "limits"
        files = _files()
        if files is None or (self._files is not None and files > self._files + MORE_FILES):
            yield "files"
        if seen.memory > self._max_memory:
            yield "memory"

    def _put_back_interpreter(self) -> None:
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(self._traces[0])
        threading.setprofile(self._traces[1])
        for (read, write), value in zip(_SETTINGS, self._settings, strict=True):
            if read() != value:
                write(value)
        for (module, name), hook in zip(_HOOKS, self._hooks, strict=True):
            setattr(module, name, hook)
        gc.callbacks[:] = self._collected

    def _put_back_streams(self) -> bool:
        sys.stdin, sys.stdout, sys.stderr = self._streams
        return [_stream_settings(stream) for stream in self._streams] == self._stream_settings

    def _threads_ended(self) -> bool:
        limit = time.monotonic() + THREADS_END
        while len(sys._current_frames()) > len(self._threads):
            if time.monotonic() > limit:
                return False
            time.sleep(0.002)
        return threading.active_count() <= len(self._threads)


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  (a string to compare, a job at a time)
    except OSError:  # it was deleted
        return ""


def _files() -> int | None:
    try:
        # The system tells their number as the folder's size, from Linux 6.2 on.
        return os.stat(FILES).st_size or len(os.listdir(FILES))  # noqa: PTH116, PTH208
    except OSError:
        return None


def _fixed() -> tuple[Any, ...]:
    """What a process can't, or should not, put back: limits, niceness, identity, where its standard files lead."""
    limits = list(map(resource.getrlimit, _LIMITS))
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    return (limits, niceness, os.getresuid(), os.getresgid(), list(map(_place, NUMBERS)))


def _place(number: int) -> tuple[int, int] | None:
    try:
        state = os.fstat(number)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _stream_settings(stream: Any) -> tuple[Any, ...] | None:
    """What makes a stream what it is; None when it is of no use."""
    try:
        if stream is None or stream.closed:
            return None
    except (AttributeError, ValueError):  # it was detached
        return None
    return tuple(getattr(stream, name, None) for name in ("encoding", "errors", "line_buffering", "write_through"))
