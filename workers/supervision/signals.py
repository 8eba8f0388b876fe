"""Signals of a process without threads: noted as they come, and one wait for them and for pipes."""

import os
import select
import signal
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType

from workers.protocol import ASKED, STOP, StopRequests


def heeded() -> list[signal.Signals]:
    """The signals that ask to stop; not those that whoever started this process told it to ignore (nohup: SIGHUP)."""
    return [number for number in (*ASKED, STOP) if signal.getsignal(number) is not signal.SIG_IGN]


class Signals:
    """Counts the requests to stop. `under_init`: what comes from others than the init comes to the init as well, and
    from there as STOP, so that only STOP counts each time."""

    def __init__(self, under_init: bool = False) -> None:
        self._requests = StopRequests((STOP,) if under_init else (*ASKED, STOP))
        self._taken = 0
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        signal.signal(STOP, signal.SIG_DFL)  # never ignored: the worker would inherit that
        for number in heeded():
            signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, self._wake)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._requests.note(number)

    def _wake(self, _number: int, _frame: FrameType | None) -> None:
        """Nothing: that a signal came has ended the wait."""

    def wait(self, seconds: float, others: Iterable[int] = ()) -> None:
        """Until a signal comes, one of these pipes has something to read or is closed, or the time is over."""
        poll = select.poll()
        for fd in (self._read, *others):
            poll.register(fd, select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)
        with suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass

    @property
    def asked(self) -> int:
        """How often it was asked to stop so far."""
        return self._requests.asked

    def take(self) -> int:
        """How many requests came since the last call: so many are to be passed on."""
        asked = self._requests.asked
        fresh, self._taken = asked - self._taken, asked
        return fresh

    def close(self) -> None:
        """In a child that goes on in this program: its signals are not the parent's."""
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)
