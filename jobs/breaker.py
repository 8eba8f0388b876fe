"""When a type's failures open its breaker: a sliding window over outcomes, pure, with the clock passed in.

The window belongs to one process and says when to open; that the breaker is open, and everything after, is a row of the
database (`jobs.transitions.circuits`). Failures over executions in a window of time with a least number of executions:
Nygard, "Release It!", 2nd ed., chapter 5.
"""

from collections import deque
from dataclasses import dataclass

STEPS = 30  # parts of a window: it forgets one at a time, and is as large in memory however much happens


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Opens when `ratio` of at least `minimum` executions within `window` seconds failed; `open_for`, in seconds, is
    how long it stays open before one job is let through. Not `enabled`: never opens."""

    enabled: bool = True
    ratio: float = 0.5
    window: float = 30.0
    minimum: int = 10
    open_for: float = 30.0


@dataclass(slots=True)
class _Step:
    """What ended from `start` on, for the length of a step."""

    start: float
    executions: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """What a window holds: failures among executions, the earliest of them `age` seconds ago at most."""

    executions: int = 0
    failures: int = 0
    age: float = 0.0

    def opens(self, policy: BreakerPolicy) -> bool:
        """Whether that is enough to open."""
        enough = self.executions >= policy.minimum and self.failures > 0
        return policy.enabled and enough and self.failures >= policy.ratio * self.executions


class Window:
    """The outcomes of the last `span` seconds, to a thirtieth of it. Instants are seconds on one monotonic clock."""

    def __init__(self, span: float) -> None:
        self.span = span
        self._steps: deque[_Step] = deque()

    def record(self, *, failed: bool, now: float) -> None:
        """An execution ended at `now`."""
        self._forget(now - self.span)
        if not self._steps or now - self._steps[-1].start >= self.span / STEPS:
            self._steps.append(_Step(now))
        self._steps[-1].executions += 1
        self._steps[-1].failures += failed

    def tally(self, now: float) -> Tally:
        """What is in the window at `now`."""
        self._forget(now - self.span)
        if not self._steps:
            return Tally()
        return Tally(
            sum(step.executions for step in self._steps),
            sum(step.failures for step in self._steps),
            max(0.0, now - self._steps[0].start),
        )

    def keep(self, seconds: float, *, now: float) -> None:
        """Forget whatever began to be counted more than `seconds` before `now`."""
        self._forget(now - seconds)

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()

    def _forget(self, before: float) -> None:
        while self._steps and self._steps[0].start < before:
            self._steps.popleft()
