"""What a process does with signals: as it was before a handler, and again after it."""

import faulthandler
import importlib
import signal
from collections.abc import Callable
from contextlib import suppress
from operator import is_
from typing import Any

from workers.isolation.looks import Look, look

TIMES = 100  # that a handler's timers may break into what stops them
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
# Without the names that `signal` gives to numbers: all sixty are looked at after each job.
_getsignal: Callable[[int], Any] = importlib.import_module("_signal").getsignal
_setsignal: Callable[[int, Any], Any] = importlib.import_module("_signal").signal


class Signals:
    """Handlers, mask and timers as they are now. Belongs to the main thread."""

    def __init__(self) -> None:
        self._handlers = {int(number): _getsignal(number) for number in signal.valid_signals()}
        self._known = list(self._handlers.values())
        self._ours = [number for number, handler in self._handlers.items() if callable(handler)]
        self._seen = look().signals
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._faults = faulthandler.is_enabled()
        self._registrable = _registrable()
        # Handled already: the system shows no difference where `faulthandler` handles them too.
        self._hidden = [n for n in self._registrable if self._handlers[n] is None or n in self._ours]

    def quiet(self) -> None:
        """A handler has ended: nothing that it set up breaks into what follows, be it by a signal or by raising."""
        for _ in range(TIMES):
            try:
                self._quiet()
            except BaseException:  # noqa: BLE001, S112  (its signal handler's)
                continue
            return

    def _quiet(self) -> None:
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        faulthandler.cancel_dump_traceback_later()
        if all(map(is_, map(_getsignal, self._handlers), self._known)):
            return
        for number, handler in self._handlers.items():
            if handler is not None and _getsignal(number) is not handler:
                _set(number, handler)

    def put_back(self, seen: Look) -> bool:
        """Put back all of it, what C code did behind Python's back too; whether that could be done. `seen`: as the
        system sees this process now. Where a handler is ours it sees no difference, so those are set in any case."""
        self.quiet()
        signal.set_wakeup_fd(-1)
        same = seen.signals == self._seen
        for number in self._hidden if same else self._registrable:
            faulthandler.unregister(number)
        for number in self._ours:
            _setsignal(number, self._handlers[number])
        if self._faults:
            faulthandler.enable(2)
        if same:
            return True
        (*_, caught), changed = _masks(self._seen), 0
        for before, now in zip(_masks(self._seen), _masks(seen.signals), strict=True):
            changed |= before ^ now
        for number, handler in self._handlers.items():
            of_c = caught >> (number - 1) & 1 and not callable(handler)  # Python does not know what it was
            if changed >> (number - 1) & 1 and handler is not None and not of_c:
                _set(number, handler)
        if self._faults:
            faulthandler.disable()
            faulthandler.enable(2)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        return look().signals == self._seen


def _masks(signals: bytes) -> list[int]:
    """Of what `look` says of signals: which are blocked, ignored, and handled; a bit each."""
    return [int(line.rpartition(b":")[2], 16) for line in signals.split(b"\n") if line.strip()]


def _set(number: int, handler: Any) -> None:
    signal.signal(number, signal.SIG_IGN)  # what is pending must not meet the default, which may end the process
    signal.signal(number, handler)


def _registrable() -> tuple[int, ...]:
    """The signals that `faulthandler.register` takes."""
    found = []
    for number in signal.valid_signals():
        with suppress(RuntimeError, ValueError, OSError):
            faulthandler.unregister(number)
            found.append(int(number))
    return tuple(found)
