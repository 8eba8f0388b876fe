"""Every minute the leader looks whether the promises hold, stores what it found, and says so when that has changed."""

import logging
import time
from collections.abc import Callable

from jobs import events, invariants
from workers.connections import ENGINE

log = logging.getLogger(__name__)
INTERVAL = 60.0  # seconds
SOON = 5.0  # seconds until the next look, where something would be broken if it stayed so


class Promises:
    """`run_once` looks, in a routine's thread; what might be broken is looked at again before it is told.

    `clock`: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watch: invariants.Watch | None = None
        self._began: float | None = None

    def run_once(self) -> int:
        """Look, and store it once it is known; 0, since there is never more to do at once. Raises database errors."""
        if self._watch is None:
            self._watch = invariants.Watch(using=ENGINE, clock=self._clock)
        checked = self._watch.look()
        now = self._clock()
        began = now if self._began is None else self._began
        if checked.unsure and now - began <= self._watch.margin + SOON:
            self._began = began
            return 0
        self._began = None
        _tell(checked, invariants.keep(checked, using=ENGINE))
        events.changed(topics=("promises",))
        return 0

    def interval(self) -> float:
        """Seconds until the next look."""
        return INTERVAL if self._began is None else SOON


def _tell(checked: invariants.Checked, before: frozenset[str]) -> None:
    broken = {finding.name for finding in checked.findings}
    for finding in checked.findings:
        if finding.name not in before:
            about = {"promise": str(finding.promise), "count": finding.count, "examples": list(finding.examples)}
            log.warning("promise.broken", extra={"invariant": finding.name, **about})
    # Of what was not asked this time nothing is known.
    open_ = {one.name for one in invariants.INVARIANTS if one.soon and not checked.attended} | {*checked.unanswered}
    for name in sorted(before - broken - open_):
        log.warning("promise.kept_again", extra={"invariant": name})
