"""What a warm child puts back between two jobs, and what makes it end instead.

Put back, since it is cheap and exact: working directory, umask, environment variables, signal handlers, signal mask and
timers, standard streams of Python, recursion limit, socket timeout, tracing, the seed of `random`. (Context variables,
the active language among them, need nothing: each job runs in a copy of the context.)

The child ends, and the next job gets another, when something is left that can't be put back with certainty: threads,
descriptors 0 to 2 that lead elsewhere, resource limits, niceness or identity, more open files than before, more memory
than allowed. Not looked at: modules that were imported or changed, globals, locale, warning filters, caches. They are
what makes a child warm; a handler that changes the process for good declares `fresh=True`.
"""

import os
import random
import resource
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MORE_FILES = 64
THREADS_END = 0.1  # seconds for a handler's last threads to end
_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Baseline:
    """A child as it is before its first job. Belongs to the main thread."""

    def __init__(self, max_memory: int) -> None:
        self._max_memory = max_memory
        self._folder = _folder()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._environment = dict(os.environ)
        self._signals = _signals()
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._recursion = sys.getrecursionlimit()
        self._fixed = _fixed()
        self._files = _files()
        self._threads = frozenset(sys._current_frames())

    def put_back(self, memory_now: int) -> str | None:
        """Put back what can be; why the child must end, if it must: one word for the log."""
        sys.settrace(None)
        sys.setprofile(None)
        self._put_back_signals()
        sys.stdin, sys.stdout, sys.stderr = self._streams
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        socket.setdefaulttimeout(None)
        os.umask(self._umask)
        if dict(os.environ) != self._environment:
            _put_back_environment(self._environment)
        random.seed()
        if self._folder and _folder() != self._folder:
            try:
                os.chdir(self._folder)
            except OSError:
                return "folder"
        if not self._threads_ended():
            return "threads"
        if _fixed() != self._fixed:
            return "limits"
        files = _files()
        if files is None or (self._files is not None and files > self._files + MORE_FILES):
            return "files"
        return "memory" if memory_now > self._max_memory else None

    def _put_back_signals(self) -> None:
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        with suppress(ValueError):
            signal.set_wakeup_fd(-1)
        for number, handler in _signals().items():
            if handler is not self._signals[number] and self._signals[number] is not None:
                signal.signal(number, self._signals[number])
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _threads_ended(self) -> bool:
        limit = time.monotonic() + THREADS_END
        while len(sys._current_frames()) > len(self._threads):
            if time.monotonic() > limit:
                return False
            time.sleep(0.002)
        return threading.active_count() <= len(self._threads)


def flush_streams() -> None:
    """Write out what the handler printed: the process may end without doing so."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def forget_peak() -> None:
    """Begin to measure the peak of memory anew, where the system lets us."""
    with suppress(OSError):
        file = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"5")
        finally:
            os.close(file)


def memory(pid: int | str = "self") -> tuple[int, int]:
    """The resident memory of a process in bytes: its peak, and now. Zeros where that can't be told."""
    with suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
        peak, now = (int(text.partition(f"{name}:")[2].split(None, 1)[0]) * 1024 for name in ("VmHWM", "VmRSS"))
        return peak, now
    return 0, 0


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  (a string to compare, a job at a time)
    except OSError:  # it was deleted
        return ""


def _signals() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _put_back_environment(environment: dict[str, str]) -> None:
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    os.environ.update(environment)


def _files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError:
        return None


def _fixed() -> tuple[Any, ...]:
    """What a process can't, or should not, put back: limits, niceness, identity, where its standard files lead."""
    limits = tuple(resource.getrlimit(limit) for limit in _LIMITS)
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    return (limits, niceness, os.getresuid(), os.getresgid(), tuple(_place(number) for number in (0, 1, 2)))


def _place(number: int) -> tuple[int, int] | None:
    try:
        state = os.fstat(number)
    except OSError:
        return None
    return state.st_dev, state.st_ino
