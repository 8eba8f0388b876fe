"""The worker's side of the line to its supervisor: who it is, and until when everything it runs must be dead.

The supervisor (`workers.supervision`) kills the worker and all below it at the instant told last: a process that is
stopped, or a thread that runs on, can't end itself. The words are those of `workers.protocol`.
"""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from workers import protocol


class SupervisorLine:
    """Thread-safe; never waits. Without a supervisor (`fd` None) it says nothing.

    `slack` is the seconds between a lease's deadline, at which handlers are told to end, and the instant at which the
    supervisor ends them: within the grace before recovery.
    """

    def __init__(self, fd: int | None, slack: float) -> None:
        self._fd = fd
        self._file = None if fd is None else os.fstat(fd).st_ino
        self._slack = slack
        self._lock = threading.Lock()
        self._told: float | None = None
        self._behind = False

    @classmethod
    def of_environment(cls, slack: float) -> "SupervisorLine":
        """The line that the supervisor gave to this process; what the process starts does not inherit it."""
        number = os.environ.pop(protocol.FD_VARIABLE, None)
        if number is None:
            return cls(None, slack)
        fd = int(number)
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)
        return cls(fd, slack)

    @property
    def supervised(self) -> bool:
        """Whether a supervisor has started this process, and made its worker's id."""
        return self._fd is not None

    def introduce(self, worker_id: UUID, grace: float, kill_grace: float) -> None:
        """The id under which the worker registers, and the seconds at its end: those that running jobs get, and those
        that handlers get after them, asked to stop."""
        self._write(protocol.worker(str(worker_id)) + protocol.grace(grace, kill_grace))

    def ready(self) -> None:
        """The worker takes work."""
        self._write(protocol.ready())

    def entered(self, deadline: float) -> None:
        """Something with this deadline is about to run: told at once when it is nearer than what was told."""
        with self._lock:
            if self._told is None or deadline < self._told:
                self._tell(deadline)

    def refresh(self, nearest: Callable[[], float | None]) -> None:
        """Tell the first deadline of all that runs (None: nothing does) when it has changed.

        Asked under the lock: an answer from before a claim must not be told after the claim's own deadline.
        """
        with self._lock:
            deadline = nearest()
            if self._behind or deadline != self._told:
                self._tell(deadline)

    def broken(self) -> bool:
        """Whether the supervisor, or this end of the line, is gone: then this process has to end, where the system did
        not end it already."""
        if self._fd is None:
            return False
        try:
            if os.fstat(self._fd).st_ino != self._file:
                return True  # a handler closed it, and something else has its number
        except OSError:
            return True
        poll = select.poll()
        poll.register(self._fd, 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))

    def forget(self) -> None:
        """In a process that was forked off: the line is the worker's alone."""
        if self._fd is not None:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = None

    def _tell(self, deadline: float | None) -> None:
        self._told = deadline
        self._behind = not self._write(protocol.kill_at(None if deadline is None else deadline + self._slack))

    def _write(self, words: bytes) -> bool:
        """A line shorter than PIPE_BUF is written whole or not at all; False when the pipe is full or broken."""
        if self._fd is None:
            return True
        try:
            os.write(self._fd, words)
        except OSError:
            return False
        return True
