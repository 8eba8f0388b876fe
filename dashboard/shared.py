"""What all viewers of this process see is computed once a span for all of them: a hundred open boards cost as one."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# Seconds that one page waits before it asks for such counts again (data-every of its regions): a crowd asks no oftener.
PATIENT = 5.0


@dataclass(slots=True)
class _Slot:
    """One shared value, computed between two monotonic instants; the lock is held while it is computed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    began: float = float("-inf")
    ended: float = float("-inf")
    value: Any = None


_slots: dict[str, _Slot] = {}
_registry = threading.Lock()


def _slot(name: str) -> _Slot:
    with _registry:
        return _slots.setdefault(name, _Slot())


def shared[T](name: str, seconds: float, compute: Callable[[], T]) -> T:
    """The value of `name`, at most `seconds` old; the first to ask computes it while the others wait for its answer.

    Whoever asked before a computation ended takes its answer, however long it took: a slow one is not queued up for.
    Names are a small, fixed set (never built from what a browser sends). What `compute` raises goes to its caller and
    is not kept: the next one tries again.
    """
    asked = time.monotonic()
    slot = _slot(name)
    with slot.lock:
        now = time.monotonic()
        if now - slot.began >= seconds and asked >= slot.ended:
            slot.value = compute()
            slot.began, slot.ended = now, time.monotonic()
        value: T = slot.value
        return value


def forget() -> None:
    """Compute everything anew at the next question: after an act of this process, and in tests."""
    with _registry:
        _slots.clear()
