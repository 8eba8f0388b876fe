"""A throw-away process with its three pipes: what it tells, what it prints, and the line on which its life hangs.

It is forked where that is safe, in a process with a single thread, and else started as a program. It leads a session
of its own; `end` kills what is left in its process group.
"""

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from django.db import connections

from jobs import tryout_child

LOOK = 0.05  # seconds between two looks where the kernel does not say that a process ended
READ_SIZE = 65536
MAX_TAIL = 16_384
PRINTING = {"PYTHONIOENCODING": "utf-8:backslashreplace", "PYTHONUNBUFFERED": "1"}
MARK = {"TURNO_CHILD": "1"}  # what an import starts is not a worker's own (workers.protocol)
_forgotten: list[object] = []


class Trial:
    """The process that tries `modules`; `on_line` gets each line that it tells. Raises OSError when it can't start."""

    def __init__(self, modules: Sequence[str], on_line: Callable[[bytes], None]) -> None:
        self._on_line = on_line
        self._rest = b""
        self._printed = bytearray()
        self._status: int | None = None
        self._program: subprocess.Popen[bytes] | None = None
        self._selector = selectors.DefaultSelector()
        ours, theirs = _pipes()
        self._results, self._output, self._lifeline = ours
        try:
            if _single_threaded():
                self.pid = _fork(modules, ours, theirs)
            else:
                self._program = _start(modules, theirs)
                self.pid = self._program.pid
        except BaseException:
            _close(*ours)
            raise
        finally:
            _close(*theirs)
        self.told_all = self.ended = False
        self._process = _pidfd(self.pid)
        for descriptor, read in ((self._results, self._read_results), (self._output, self._read_output)):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, read)
        if self._process is not None:
            self._selector.register(self._process, selectors.EVENT_READ, self._note_end)

    def listen(self, until: float) -> None:
        """Hear what comes by that instant of the monotonic clock; back after each piece, at the latest then.

        `told_all` says afterwards whether nothing more can be told, `ended` whether the process has ended.
        """
        wait = max(0.0, until - time.monotonic())
        if self._process is None:  # no such thing on this system
            wait = min(wait, LOOK) if self.told_all else wait
            pid, status = os.waitpid(self.pid, os.WNOHANG) if not self.ended else (0, 0)
            if pid:
                self._status, self.ended = status, True
        for key, _events in self._selector.select(wait):
            key.data()

    def _read_results(self) -> None:
        data = self._read(self._results)
        if data is None:
            self.told_all = True
        *lines, self._rest = (self._rest + (data or b"")).split(b"\n")
        for line in lines:
            self._on_line(line)

    def _read_output(self) -> None:
        self._printed += self._read(self._output) or b""
        del self._printed[:-MAX_TAIL]

    def _read(self, descriptor: int) -> bytes | None:
        """What there is, nothing, or None at the end, after which the pipe is not looked at any more."""
        try:
            data = os.read(descriptor, READ_SIZE)
        except BlockingIOError:
            return b""
        if not data:
            self._selector.unregister(descriptor)
        return data or None

    def _note_end(self) -> None:
        self.ended = True
        if self._process is not None:
            self._selector.unregister(self._process)

    def ask_where(self, patience: float) -> None:
        """Let a process that hangs print where it is, which ends it; waits at most `patience` seconds for it."""
        until = time.monotonic() + patience
        self._send(signal.SIGABRT)
        while not self.ended and time.monotonic() < until:
            self.listen(min(until, time.monotonic() + LOOK))

    def end(self) -> int:
        """Kill what is left of its process group and reap it; its exit code, negative for a signal."""
        with suppress(ProcessLookupError, PermissionError):  # it did not yet lead its group; none is left of it
            os.killpg(self.pid, signal.SIGKILL)
        if self._status is None:
            self._send(signal.SIGKILL)
            try:
                self._status = os.waitpid(self.pid, 0)[1]
            except ChildProcessError:  # somebody else reaped it
                self._status = 0
        for _ in range(MAX_TAIL):  # bounded: what left the group may print for ever
            if self._output not in self._selector.get_map() or not self._readable():
                break
            self._read_output()
        if self._program is not None:
            self._program.returncode = 0  # reaped already
        self._selector.close()
        _close(self._results, self._output, self._lifeline, *([] if self._process is None else [self._process]))
        return os.waitstatus_to_exitcode(self._status)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process is not None:
                signal.pidfd_send_signal(self._process, number)
            elif not self.ended:
                os.kill(self.pid, number)

    def _readable(self) -> bool:
        return any(key.fd == self._output for key, _events in self._selector.select(0))

    def printed(self) -> str:
        """What the module that was tried last printed, its last 16 KiB."""
        return bytes(self._printed).rpartition(tryout_child.NEXT)[2].decode("utf-8", "replace").strip()


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Our ends and theirs: results and output come to us, the lifeline goes to them."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += os.pipe()
    except OSError:
        _close(*opened)
        raise
    results, their_results, output, their_output, their_lifeline, lifeline = opened
    return (results, output, lifeline), (their_results, their_output, their_lifeline)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _single_threaded() -> bool:
    """Whether a fork copies all that there is of this process. Where that can't be told, it does not."""
    try:
        return threading.active_count() == 1 and len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def _fork(modules: Sequence[str], ours: Sequence[int], theirs: Sequence[int]) -> int:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # what is not flushed here would be printed by both
            stream.flush()
    pid = os.fork()
    if not pid:
        _become_child(modules, ours, theirs)
    return pid


def _become_child(modules: Sequence[str], ours: Sequence[int], theirs: Sequence[int]) -> NoReturn:
    try:
        os.setsid()
        os.environ.update(MARK)
        _close(*ours)
        results, output, lifeline = theirs
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, number in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(descriptor, number)
        _close(nothing, output)
        sys.stdout = open(1, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        _forget_connections()
        tryout_child.run(modules, results, lifeline)
    finally:
        os._exit(1)


def _forget_connections() -> None:
    """The parent's connections are its own: kept here as they are, so that not a byte is sent on them."""
    for connection in connections.all(initialized_only=True):
        _forgotten.append(connection)
        del connections[connection.alias]


def _start(modules: Sequence[str], theirs: Sequence[int]) -> subprocess.Popen[bytes]:
    results, output, lifeline = theirs
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", tryout_child.__name__, str(results), str(lifeline), *modules],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(results, lifeline),
        env={**os.environ, **MARK, "PYTHONPATH": path, **PRINTING},
        start_new_session=True,
    )


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
