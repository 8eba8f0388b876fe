"""A loop that wakes less often while its children have enough to do.

A child that says how its job has ended wakes the pool's thread, which is as dear as what follows. While children have
more jobs before them, nobody waits for that: what they say may gather for a moment.
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

NAP = 0.0005  # seconds: less than a child has before it


class Drowsy(selectors.DefaultSelector):
    """Before it waits it sleeps, for as long as `may_nap` allows that and no timer is due."""

    def __init__(self, may_nap: Callable[[], bool]) -> None:
        super().__init__()
        self._may_nap = may_nap

    def select(self, timeout: float | None = None) -> Any:
        if (timeout is None or timeout > NAP) and self._may_nap():
            time.sleep(NAP)
            timeout = None if timeout is None else timeout - NAP
        return super().select(timeout)


def new_loop(may_nap: Callable[[], bool]) -> asyncio.AbstractEventLoop:
    """An event loop that asks this before it waits for anything: whether nobody minds half a millisecond more."""
    return asyncio.SelectorEventLoop(Drowsy(may_nap))
