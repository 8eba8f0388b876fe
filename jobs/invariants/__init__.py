"""The three promises as SQL, one statement an invariant: for the storm, tests, `turno check` and the screen Promessas.

Some hold at every instant; others soon after whatever shook them, while somebody leads. None of them waits for a lock
or writes anything.
"""

from jobs.invariants.base import Finding, Invariant, Promise
from jobs.invariants.checking import INVARIANTS, Checked, Watch, check, examine, guards, usual_margin
from jobs.invariants.store import keep, keep_storm

__all__ = [
    "INVARIANTS",
    "Checked",
    "Finding",
    "Invariant",
    "Promise",
    "Watch",
    "check",
    "examine",
    "guards",
    "keep",
    "keep_storm",
    "usual_margin",
]
