"""What a warm child puts back between two jobs, and what makes it end instead.

Put back, since it is cheap and exact: working directory, umask, environment variables, signal handlers, signal mask and
timers, standard streams of Python, recursion limit, socket timeout, tracing, the seed of `random`. (Context variables,
the active language among them, need nothing: each job runs in a copy of the context.)

The child ends, and the next job gets another, when something is left that can't be put back with certainty: threads,
descriptors 0 to 2 that lead elsewhere, resource limits, niceness or identity, more open files than before, or when it
has grown by more memory than it may. Not looked at: modules that were imported or changed, globals, locale, warning
filters, caches. They are what makes a child warm; a handler that changes the process for good declares `fresh=True`.
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
from typing import Any, NamedTuple

from workers.isolation.gate import RAISE

MORE_FILES = 64
THREADS_END = 0.1  # seconds for a handler's last threads to end
_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Baseline:
    """A child as it is before its first job. Belongs to the main thread."""

    def __init__(self, growth: int) -> None:
        self._max_memory = look().memory + growth  # what was loaded before the fork is no leak of the child's
        self._folder = _folder()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._environment = dict(os.environ)
        self._environment_data = dict(_environment_data())
        self._signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._signals_seen = look().signals
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._recursion = sys.getrecursionlimit()
        self._fixed = _fixed()
        self._files = _files()
        self._threads = frozenset(sys._current_frames())

    def put_back(self, seen: "Look") -> str | None:
        """Put back what can be; why the child must end, if it must: one word for the log."""
        sys.settrace(None)
        sys.setprofile(None)
        self._put_back_signals(seen)
        sys.stdin, sys.stdout, sys.stderr = self._streams
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        socket.setdefaulttimeout(None)
        os.umask(self._umask)
        if _environment_data() != self._environment_data:
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
        return "memory" if seen.memory > self._max_memory else None

    def _put_back_signals(self, seen: "Look") -> None:
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        signal.set_wakeup_fd(-1)
        # What the system sees tells all but one handler of ours from another: one look instead of sixty.
        if seen.signals != self._signals_seen or signal.getsignal(RAISE) is not self._signals[RAISE]:
            for number, handler in self._signals.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
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


class Look(NamedTuple):
    """A process seen from outside: its state (a letter of the system's), resident memory now and at most, in bytes,
    and what it does with signals."""

    state: str = ""
    memory: int = 0
    peak: int = 0
    signals: bytes = b""


def look(pid: int | str = "self") -> Look:
    """Look at a process; zeros where nothing can be told of it, as of one that has ended."""
    with suppress(OSError, ValueError, IndexError):
        file = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(file, 8192)
        finally:
            os.close(file)
        now, peak = (int(text.partition(name)[2].split(None, 1)[0]) * 1024 for name in (b"VmRSS:", b"VmHWM:"))
        state = text.partition(b"State:")[2].split(None, 1)[0].decode()
        return Look(state, now, peak, text.partition(b"SigBlk:")[2].partition(b"CapInh:")[0])
    return Look()


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  (a string to compare, a job at a time)
    except OSError:  # it was deleted
        return ""


def _environment_data() -> Any:
    """The variables as they are kept, without a copy of each text."""
    return getattr(os.environ, "_data", None) or dict(os.environ)


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
