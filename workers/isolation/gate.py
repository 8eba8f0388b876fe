"""The gate: whether a signal may raise the word "stop" in the main thread of a child, now or at the next good moment.

It is open while the handler's own code runs, and held while a frame is written: an exception in the middle of one would
leave the worker with half a sentence.
"""

import signal
import threading
from types import FrameType, TracebackType

from jobs.cancellation import CancelFlag

RAISE = signal.SIGUSR1


class Gate:
    """`RAISE` raises the flag's error at most once a job. Everything but `ask` belongs to the main thread."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._flag: CancelFlag | None = None  # open: of the handler that runs
        self._held = 0
        self._asked = False

    def ask(self) -> None:
        """From the watchdog: raise in the main thread as soon as that is right; a system call there is broken off."""
        self._asked = True
        if self._main is not None:
            signal.pthread_kill(self._main, RAISE)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The signal's handler."""
        self._pass()

    def reset(self) -> None:
        """A new job begins, nobody has asked."""
        self._asked = False

    def open(self, flag: CancelFlag) -> None:
        """The handler's code begins. Raises the flag's error when that was asked for already."""
        self._flag = flag
        self._pass()

    def close(self) -> None:
        """The handler's code has ended."""
        self._flag = None

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            self._held += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if threading.get_ident() == self._main:
            self._held -= 1
            if kind is None:
                self._pass()

    def _pass(self) -> None:
        flag = self._flag
        if self._asked and flag is not None and not self._held:
            self._flag = None
            flag.raise_if_set()
