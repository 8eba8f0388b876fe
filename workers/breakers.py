"""The windows of this worker over what its types end as, and the opening of their breakers.

A window is this process's own; it may open the type's breaker for all. What a probe's end does is decided where the end
is written (`jobs.transitions.finish`).
"""

import logging
import time
from collections.abc import Callable, Iterable

from jobs import events, transitions
from jobs.breaker import BreakerPolicy, Window
from jobs.outcomes import Ending
from jobs.policy import breaker_policy
from jobs.states import FailureKind, Outcome, State
from jobs.transitions import Trip, Tripped
from workers.connections import ENGINE

log = logging.getLogger(__name__)
FAILURES = (Outcome.FAILED, Outcome.TIMED_OUT)


def charged(ending: Ending, state: State | None) -> bool | None:
    """Whether an execution whose job is in `state` now (None: the end was not written) failed, as a breaker counts it.

    None when it says nothing about what the type depends on: cancelled, snoozed, given back, a permanent error, or a
    process that could not be started.
    """
    if state is State.SUCCEEDED:
        return False
    if state is None or state is State.CANCELLED or ending.failure_kind is FailureKind.PERMANENT:
        return None
    crashed = ending.outcome is Outcome.WORKER_LOST and (ending.signal is not None or ending.exit_code is not None)
    return True if crashed or ending.outcome in FAILURES else None


class Breakers:
    """Used in the thread that writes ends, and nowhere else; `clock` gives seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, tuple[BreakerPolicy, Window]] = {}
        self._failed: set[str] = set()

    def record(self, type_name: str, failed: bool | None) -> None:
        """An execution of the type ended now; `failed` as `charged` says."""
        if failed is None:
            return
        known = self._windows.get(type_name)
        if known is None:
            policy = breaker_policy(type_name)
            known = self._windows[type_name] = policy, Window(policy.window)
        known[1].record(failed=failed, now=self._clock())
        if failed:
            self._failed.add(type_name)

    def trip(self) -> None:
        """Open the breakers for which what was recorded since the last call is reason enough. Raises database errors,
        and has then forgotten nothing but that it was asked."""
        failed, self._failed = self._failed, set()
        reasons = self._reasons(failed)
        if not reasons:
            return
        found = self._tripped(reasons)
        # Where the breaker closed in the middle of the window, what came afterwards may be reason enough by itself.
        for type_name, seconds in found.closed_for.items():
            self._windows[type_name][1].keep(seconds, now=self._clock())
        self._tripped(self._reasons(found.closed_for))

    def _reasons(self, types: Iterable[str]) -> list[Trip]:
        reasons = []
        for type_name in types:
            policy, window = self._windows[type_name]
            tally = window.tally(self._clock())
            if tally.opens(policy):
                span, open_for = policy.window, policy.open_for
                reasons.append(Trip(type_name, tally.executions, tally.failures, span, open_for, tally.age))
        return reasons

    def _tripped(self, reasons: list[Trip]) -> Tripped:
        found = transitions.trip(reasons, using=ENGINE)
        for reason in reasons:
            if reason.type not in found.closed_for:  # open now, or was before: whatever is next begins a new window
                self._windows[reason.type][1].clear()
            if reason.type in found.opened:
                told = {"type": reason.type, "failures": reason.failures, "executions": reason.executions}
                log.warning("breaker.opened", extra=told | {"open_for_seconds": reason.open_for})
        if found.opened:
            events.changed(topics=("jobs", "queues"))
        return found
