"""Ctrl-C and its relatives: the first one during the start interrupts it, later ones are counted."""

import os
import select
import signal
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Somebody asked the launcher to stop while it was starting."""


class Signals:
    """The launcher's signals. `count` is how often it was asked to stop, `asked` by which of them."""

    def __init__(self) -> None:
        self.count = 0
        self.asked: list[int] = []
        self.raising = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def install(self) -> None:
        """Take over the stop signals and the news of ended children (main thread)."""
        for sign in STOPPING:
            signal.signal(sign, self._note)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes `wait`
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, `seconds` at most."""
        if select.select([self._reader], [], [], max(0.0, seconds))[0]:
            try:
                while os.read(self._reader, 512):
                    pass
            except BlockingIOError:
                pass

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.asked.append(number)
        self.count += 1
        if self.raising:
            self.raising = False
            raise Interrupted
