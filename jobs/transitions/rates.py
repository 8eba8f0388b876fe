"""A rate limit: at most so many starts of a type in any window, whoever starts them. Arithmetic only, no I/O.

Starts are counted by fiftieths of the window; one counts until its fiftieth has left the window whole. So no window
ever has more than are allowed, and a type that always waits gets at least 98 % of its rate (a sliding window counter;
a token bucket would let through twice as many in a window that begins with a full one).
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import orjson

from jobs.ratelimit import PARTS


class Budget:
    """What is left of a rate at `now` (seconds of the database's clock); `spent` as it is kept in `rates`."""

    def __init__(self, allowed: int, window: float, spent: Any, now: float) -> None:
        self._allowed = allowed
        self._part = window / PARTS
        known = _pairs(spent)
        # The clock may have been set back: time does not run backwards here. By more than a window: what was spent has
        # just been spent then, or nothing could start before the clock is there again.
        here = int(now // self._part)
        self.set_back = any(part > here + PARTS for part, _ in known)
        if self.set_back:
            known = [(here, sum(count for _, count in known))]
        self._now = max([here, *(part for part, _ in known)])
        self._spent = {part: count for part, count in known if part >= self._now - PARTS}
        self._since = now
        self._taken = 0
        self.promised = 0  # woken, and not started: for those nothing is paid as yet

    @staticmethod
    def having(window: float, started: int, now: float) -> list[list[int]]:
        """What is to be kept of a window in which so many have started, at `now` at the latest."""
        return [[int(now // (window / PARTS)), started]]

    @property
    def left(self) -> int:
        """How many may start now."""
        return max(0, self._allowed - sum(self._spent.values()))

    @property
    def room(self) -> int:
        """How many more may be woken now: whoever is woken and has not started is before them."""
        return max(0, self.left - self.promised)

    def take(self) -> bool:
        """Start one, if one may."""
        if self.left <= 0:
            return False
        self._spent[self._now] = self._spent.get(self._now, 0) + 1
        self._taken += 1
        return True

    def promise(self) -> bool:
        """Wake one, if one more may be woken; it pays where it starts."""
        if self.room <= 0:
            return False
        self.promised += 1
        return True

    @property
    def news(self) -> bool:
        """Whether there is anything new to be kept."""
        return self._taken > 0 or self.set_back

    @property
    def spent(self) -> list[list[int]]:
        """What is to be kept."""
        return [[part, count] for part, count in sorted(self._spent.items())]

    @property
    def wait(self) -> float:
        """Seconds until one more may be woken, as if those that are woken started now; 0 when one may."""
        if self.room > 0:
            return 0.0
        taken = self._spent | {self._now: self._spent.get(self._now, 0) + self.promised}
        over = sum(taken.values()) - self._allowed
        for part, count in sorted(taken.items()):
            over -= count
            if over < 0:
                # A little more than to the very edge, where floats may fall to either side.
                return max(0.0, (part + PARTS + 1) * self._part - self._since) + self._part / 1000
        return self._part


def _pairs(spent: Any) -> list[tuple[int, int]]:
    """What the row keeps, as text or read; whatever else stands there counts as nothing."""
    with suppress(orjson.JSONDecodeError):
        spent = orjson.loads(spent) if isinstance(spent, str) else spent
    if not isinstance(spent, Sequence):
        return []
    return [
        (pair[0], pair[1])
        for pair in spent
        if isinstance(pair, Sequence) and len(pair) == 2 and all(type(n) is int for n in pair)
    ]
