"""Everything below the supervisor: reaped, searched for orphans, killed when the worker has ended."""

import os
import time
from collections.abc import Collection

from workers import marks, tree
from workers.clock import boottime
from workers.supervision.events import say

LOOK = 2.0  # seconds between two looks for orphans
KILLING = 1.0  # seconds for orphans to be gone; what is left then is found by the next look


class Below:
    """All that this process gets for children is the worker's: it has none of its own before (see `door`)."""

    def __init__(self) -> None:
        tree.become_subreaper()
        self._due = 0.0

    def reap(self) -> dict[int, int]:
        """Wait status by pid of what has ended since the last call."""
        return dict(tree.reap())

    def look(self, ours: Collection[int], worker_id: str | None = None) -> None:
        """What lost its parents below us became our child, and nobody waits for it any more: kill it.

        Except what the living worker's own handlers put into the background: that is theirs to end.
        """
        now = boottime()
        if now < self._due:
            return
        self._due = now + LOOK
        said, limit = False, time.monotonic() + KILLING
        try:
            # Again and again: what these had below them becomes our child when they are dead.
            while (orphans := _orphans(ours, worker_id)) and time.monotonic() < limit:
                if not said:
                    say("supervisor.orphans_killed", "warning", pids=orphans)
                said = True
                for pid in orphans:  # each for itself: one of the others may just have become our child
                    tree.kill_tree(pid, max(0.1, limit - time.monotonic()))
        except OSError as error:
            say("supervisor.look_failed", "error", error=str(error))

    def kill(self, seconds: float) -> bool:
        """Kill all. False when something still lives after so many seconds: the kernel has it in its hands."""
        try:
            count = len(tree.descendants(os.getpid()))
            gone = tree.kill_below(os.getpid(), seconds)
        except OSError as error:
            say("supervisor.look_failed", "error", error=str(error))
            return False
        if count > 0 or not gone:
            say("supervisor.killed", "warning" if gone else "critical", count=count, gone=gone)
        return gone


def _orphans(ours: Collection[int], worker_id: str | None) -> list[int]:
    found = [pid for pid in tree.children(os.getpid()) if pid not in ours]
    return [pid for pid in found if worker_id is None or not marks.of_workers_handlers(pid, worker_id)]
