"""A child's end of the connection on which it says what becomes of its jobs.

A handler may close every descriptor, or fork and come back twice. So before each frame the child looks whether the
descriptor is still its own socket, and whether it is still itself.

Frames are said from anywhere: by the handler's threads, by the watchdog, and, between any two steps of this very code,
by a destructor that the collector calls or by a signal handler, which may raise as well. So each frame goes into a
queue, and whoever has the turn writes the queue. A thread that is in the middle of writing already only queues; what
was written of a frame is kept with it, so that after an exception the next one goes on where this one stopped.
"""

import errno
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from itertools import starmap
from typing import Any

from workers.isolation import frames
from workers.isolation.gate import Gate

PATIENCE = 1.0  # seconds to wait for another thread's turn, which writes what is queued meanwhile
Make = Callable[[], bytes | None]


class ConnectionGone(Exception):
    """The connection to the worker is closed, or its descriptor was taken by something else."""


class _Frame:
    """`make` is called when its turn has come; None: there is nothing to say any more."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._bytes: memoryview | None = None
        self.sent: list[int] = []  # how many bytes, by and by

    def rest(self) -> memoryview:
        """What is not written yet."""
        if self._bytes is None:
            self._bytes = memoryview(self._make() or b"")
        return self._bytes[sum(self.sent) :]


class Wire:
    """Thread-safe, re-entrant. In a forked copy of this process it says nothing.

    `_turn` is held by who writes, and `Gate.writer` names the thread in the middle of that. `_queue` is appended to by
    all, and shortened under the turn.
    """

    def __init__(self, work: socket.socket, gate: Gate) -> None:
        self._work = work
        self._gate = gate
        self._turn = threading.RLock()
        self._queue: deque[_Frame] = deque()
        self._pid = os.getpid()
        self._file = os.fstat(work.fileno()).st_ino

    @property
    def is_original(self) -> bool:
        """Whether this process is the one that the worker knows, no copy that a handler forked."""
        return os.getpid() == self._pid

    def send(self, *message: Any) -> None:
        """Say something to the worker, which may take a moment when it is busy. Raises ConnectionGone."""
        frame = frames.pack(*message)
        self.put(lambda: frame)

    def put(self, make: Make) -> None:
        """Say the frame that `make` gives when its turn has come, or nothing. It is written when this returns, but
        where this thread is in the middle of writing, or another one is for long: that writes it then. Raises
        ConnectionGone.
        """
        if self.is_original:
            self._queue.append(_Frame(make))
            self._write_queue(PATIENCE)

    def offer(self, make: Make | None = None) -> None:
        """Write what is queued, and then `make`, as far as that takes no waiting."""
        if make is not None and not self._queue:
            self._queue.append(_Frame(make))
        if self._queue:
            self._write_queue(0.0)

    def finish(self) -> None:
        """Write everything that was said; in the main thread, with no call of this class below it. Raises
        ConnectionGone."""
        if self._gate.writer == threading.get_ident():
            self._gate.writer = None  # an exception came where no `finally` sees it: Python has such places
        while self._queue and self.is_original:
            self._write_queue(PATIENCE)

    def _write_queue(self, patience: float) -> None:
        # The loop stands outside of every `try`: an exception that a signal handler raises at its jump is seen by none.
        while self._queue and self._write_first(patience):
            pass
        self._gate.look()

    def _write_first(self, patience: float) -> bool:
        """Write the first frame, or as much of it as can be; whether there may be a second."""
        took: list[bool] = []
        try:
            _keep(took, self._turn.acquire, *((True, patience) if patience else (False,)))
            # Else another one writes, or this is a call inside of one that does: it writes what is queued.
            return took[0] and self._gate.writer is None and self._write(0 if patience else socket.MSG_DONTWAIT)
        finally:
            if took and took[0]:
                self._turn.release()

    def _write(self, flags: int) -> bool:
        try:
            self._gate.writer = threading.get_ident()
            return bool(self._queue) and self._write_of(self._queue[0], flags)
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionGone(str(error)) from None
        finally:
            self._gate.writer = None

    def _write_of(self, frame: _Frame, flags: int) -> bool:
        rest = frame.rest()
        if rest:
            self._look()
            _keep(frame.sent, self._work.send, rest, flags)
            if frame.sent[-1] < len(rest):
                return True
        self._queue.popleft()
        return True

    def _look(self) -> None:
        try:
            found = os.fstat(self._work.fileno()).st_ino
        except OSError as error:
            if error.errno != errno.EBADF:  # a signal handler's own: TimeoutError is one of these
                raise
            found = None
        if found != self._file:
            raise ConnectionGone("a handler closed it")


def _keep[T](found: list[T], call: Callable[..., T], *arguments: Any) -> None:
    """Append what a function of C answers, so that no signal handler can raise between the two and lose the answer."""
    found.extend(starmap(call, (arguments,)))
