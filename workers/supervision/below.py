"""Everything below the supervisor: reaped, searched for orphans, killed when the worker has ended."""

import os
from collections.abc import Collection

from workers import tree
from workers.clock import boottime
from workers.supervision.events import say

LOOK = 2.0  # seconds between two looks for orphans


class Below:
    """What was there before (`sh -c "other & exec manage.py runworker"`) is not ours: it is reaped, never killed."""

    def __init__(self) -> None:
        self._before: set[int] = set()
        try:
            self._before.update(tree.children(os.getpid()))
        except OSError as error:
            say("supervisor.look_failed", "error", error=str(error))
        tree.become_subreaper()
        self._due = 0.0

    def reap(self) -> dict[int, int]:
        """Wait status by pid of what has ended since the last call."""
        ended = dict(tree.reap())
        self._before.difference_update(ended)  # its pid may be another's now
        return ended

    def look(self, ours: Collection[int]) -> None:
        """What lost its parents below us became our child, and nobody waits for it any more: kill it."""
        now = boottime()
        if now < self._due:
            return
        self._due = now + LOOK
        spared = self._before.union(ours)
        try:
            orphans = [pid for pid in tree.children(os.getpid()) if pid not in spared]
            if orphans:
                say("supervisor.orphans_killed", "warning", pids=orphans)
                tree.kill_below(os.getpid(), 1.0, spared)
        except OSError as error:
            say("supervisor.look_failed", "error", error=str(error))

    def kill(self, seconds: float) -> bool:
        """Kill all. False when something still lives after so many seconds: the kernel has it in its hands."""
        try:
            count = len(tree.descendants(os.getpid())) - len(self._before)
            gone = tree.kill_below(os.getpid(), seconds, self._before)
        except OSError as error:
            say("supervisor.look_failed", "error", error=str(error))
            return False
        if count > 0 or not gone:
            say("supervisor.killed", "warning" if gone else "critical", count=count, gone=gone)
        return gone
