"""The product's own invariants of gates and slots, asked by themselves: also of rows that have no history.

A gate that has just opened is told by NOTIFY and opened a moment later: ask with `eventually`, or when all is quiet.
"""

from typing import NamedTuple
from uuid import UUID

from jobs.invariants import INVARIANTS, Watch
from jobs.invariants.gates import GATES

CLOSED = frozenset(one.name for one in GATES)
STRAYS, CROWDED = "slot_has_a_holder", "key_is_not_crowded"
HELD = frozenset({STRAYS, "running_holds_its_key", "running_counts_for_its_type"})
assert {CROWDED, *HELD} <= {one.name for one in INVARIANTS}


class Lie(NamedTuple):
    """A parked job that says that it waits for something that is open, and the invariant that it breaks."""

    id: UUID
    breaks: str


def broken(*names: str, using: str = "default") -> list[tuple[str, str]]:
    """(invariant, id) of whatever breaks one of these invariants now."""
    found = Watch(margin=0, whole=True, only=names, using=using).look().wrong
    return [(name, id_) for name, ids in found.items() for id_ in ids]


def lies(*, using: str = "default") -> list[Lie]:
    """The parked jobs whose gate is open now; by one snapshot."""
    return [Lie(UUID(id_), name) for name, id_ in broken(*CLOSED, using=using)]


def strays(*, using: str = "default") -> list[UUID]:
    """The jobs of slots that belong to no execution."""
    return [UUID(id_) for _, id_ in broken(STRAYS, using=using)]


def crowded(*, using: str = "default") -> list[str]:
    """Keys with more slots than any of their holders allows."""
    return [key for _, key in broken(CROWDED, using=using)]


def wrong_slots(*, using: str = "default") -> list[tuple[str, str]]:
    """Slots of nobody, and running jobs that lack one that they need: (invariant, job)."""
    return broken(*HELD, using=using)


def waits_truly(*, using: str = "default") -> bool:
    """No parked job waits for what is open, no slot is a stray, no key is crowded: what holds when all is quiet."""
    return not broken(*CLOSED, STRAYS, CROWDED, using=using)
