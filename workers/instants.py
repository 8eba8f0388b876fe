"""What a routine has in common that does what is due: how long it sleeps between two looks."""

from collections.abc import Callable

from jobs.conf import conf

LOCKED = 0.05  # seconds
SHORTEST = 0.005  # seconds


class Instants:
    """`run_once` does what is due, one batch a call, and says how much that was; `interval` are the seconds to sleep.

    `nearest` says how many seconds there are until something is due: 0 when something is, None when nothing waits.
    """

    def __init__(self, work: Callable[[], int], nearest: Callable[[], float | None]) -> None:
        self._work = work
        self._nearest = nearest
        self._in_vain = 0

    def run_once(self) -> int:
        """One batch."""
        done = self._work()
        self._in_vain = 0 if done else self._in_vain + 1
        return done

    def interval(self) -> float:
        """Until the next instant, at most the scheduler's interval.

        What is due, though all that was due has been done just now, came due meanwhile: it is looked for at once. Only
        what was looked for again in vain is most likely locked by somebody, maybe for long.
        """
        nearest, interval = self._nearest(), conf().scheduler.interval
        if nearest == 0:
            return 0.0 if self._in_vain < 2 else min(interval, LOCKED)
        return interval if nearest is None else min(interval, max(SHORTEST, nearest))
