"""The gate: whether a signal may raise the word "stop" in the main thread of a child, now or at the next good moment.

It is open while the handler's own code runs, and held while a frame is written: an exception in the middle of one would
leave the worker with half a sentence until something else is said.
"""

import signal
import threading
from types import FrameType

from jobs.cancellation import CancelFlag

RAISE = signal.SIGUSR1


class Gate:
    """`RAISE` raises the flag's error at most once a job. Everything but `ask` belongs to the main thread.

    Jobs have numbers, from 1 on: what is asked for one says nothing of another.
    """

    def __init__(self) -> None:
        self.writer: int | None = None  # the thread that writes a frame just now (`wire`)
        self._main = threading.main_thread().ident
        self._flag: CancelFlag | None = None  # open: of the handler that runs
        self._number = 0
        self._asked = 0

    def ask(self, number: int) -> None:
        """From the watchdog: raise in the main thread as soon as that is right, if this job is the one that runs; a
        system call there is broken off."""
        self._asked = number
        if self._main is not None:
            signal.pthread_kill(self._main, RAISE)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The signal's handler."""
        self._pass()

    def begin(self, number: int) -> None:
        """The job of this number begins."""
        self._number = number

    def open(self, flag: CancelFlag) -> None:
        """The handler's code begins. Raises the flag's error when that was asked for already."""
        self._flag = flag
        self._pass()

    def close(self) -> None:
        """The handler's code has ended."""
        self._flag = None

    def look(self) -> None:
        """A frame is written; in any thread. In the main one it raises what was asked for meanwhile."""
        if threading.get_ident() == self._main:
            self._pass()

    def told(self) -> None:
        """The handler has got the flag's error; in any thread. In the main one it is not raised a second time."""
        if threading.get_ident() == self._main:
            self._flag = None

    def _pass(self) -> None:
        flag = self._flag
        if flag is not None and self._asked == self._number and self.writer != self._main:
            self._flag = None
            flag.raise_if_set()


class ChildFlag(CancelFlag):
    """The flag of a job in a child. A handler that met its error in a call of the context (`ctx.sleep`), and clears up
    now, is not broken off by the gate."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def raise_if_set(self) -> None:
        """Raise the error that it was set with; nothing when it is not set."""
        if self.is_set():
            self._gate.told()
        super().raise_if_set()
