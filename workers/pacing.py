"""How large the next batch of a routine may be: smaller after one that took long, larger again after quick ones."""

from collections.abc import Callable
from time import monotonic

from django.db import OperationalError

from jobs import quick

SLOW = 0.5  # seconds of a batch after which the next has half as many rows
QUICK = 0.2  # seconds below which it has twice as many


class Pace:
    """Of one kind of batch. `size` is the rows of the next, between 1 and the most that `run` is told."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.size = 0
        self._clock = clock

    def run[T](self, batch: Callable[[int], T], most: int) -> T | None:
        """Do one batch of `size` rows; None where a statement took too long: the next one is smaller.

        Raises what `batch` raises, and the statement's OperationalError where the batch had one row.
        """
        self.size = min(self.size or most, most)
        started = self._clock()
        try:
            done = batch(self.size)
        except OperationalError as error:
            if not quick.too_slow(error) or self.size == 1:
                raise
            self.size = max(1, self.size // 4)
            return None
        took = self._clock() - started
        if took > SLOW:
            self.size = max(1, self.size // 2)
        elif took < QUICK:
            self.size = min(most, self.size * 2)
        return done
