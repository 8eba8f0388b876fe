"""What a verb may do: which changes of state to the jobs that it is told of, which to others, what else of a row."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from jobs.states import Reason, State
from tests.laws.guards import keep
from tests.machine.world import EMPTY, Step, World

S, E, P = State.SCHEDULED, State.ENQUEUED, State.PROCESSING
OK, FAILED, CANCELLED = State.SUCCEEDED, State.FAILED, State.CANCELLED

type Edge = tuple[str | None, str, str]

BORN = {(None, E, Reason.CREATED), (None, S, Reason.CREATED)}
CLAIMED = {(E, P, Reason.CLAIMED)}
WAKES = {(S, E, Reason.GATE_OPENED)}
FALLS = {(S, CANCELLED, Reason.PARENT_FAILED)}
PARKS = {(E, S, Reason.PARKED)}
BREAKS = {(E, S, Reason.CIRCUIT_OPEN)}
CANCELS = {(S, CANCELLED, Reason.CANCELLED), (E, CANCELLED, Reason.CANCELLED)}
STOPPED = {(P, CANCELLED, Reason.CANCELLED)}
LOST = {
    (P, E, Reason.WORKER_LOST),
    (P, E, Reason.TAKEN_BACK),
    (P, E, Reason.RELEASED),
    (P, S, Reason.WORKER_LOST),
    (P, FAILED, Reason.LOST_TOO_OFTEN),
    (P, FAILED, Reason.ATTEMPTS_USED_UP),
    (P, FAILED, Reason.NEVER_REPEATED),
}
ENDS = LOST | {
    (P, OK, Reason.SUCCEEDED),
    (P, S, Reason.RETRY),
    (P, S, Reason.SNOOZED),
    (P, FAILED, Reason.PERMANENT),
}
REQUEUES = {(FAILED, E, Reason.REQUEUED), (CANCELLED, E, Reason.REQUEUED)}
# What may change besides the state where the state stays: a parked job may go from one gate to another.
MOVES = frozenset({"waiting_for", "gate", "run_at"})
OWNERS = frozenset({"lease_expires_at", "started_at", "progress", "stage"})


@dataclass(frozen=True)
class Power:
    """`own`: of jobs that the verb is told of; `side`: of any job; `touches`: columns of a row whose state stays;
    `deletes`: jobs that have ended may go."""

    own: frozenset[Edge] = frozenset()
    side: frozenset[Edge] = frozenset()
    touches: frozenset[str] = frozenset()
    deletes: bool = False


def power(own: set[Edge] | None = None, side: set[Edge] | None = None, *touches: str, deletes: bool = False) -> Power:
    """One of POWERS."""
    return Power(frozenset(own or ()), frozenset(side or ()), frozenset(touches), deletes=deletes)


POWERS = {
    "insert": power(BORN),
    "fire": power(BORN),
    "claim": power(CLAIMED, WAKES | PARKS | BREAKS, *MOVES),
    "claim_next": power(CLAIMED, WAKES | PARKS, *MOVES),
    "renew": power(None, None, "lease_expires_at"),
    "begin": power(None, None, "started_at"),
    "note": power(None, None, "progress", "stage"),
    "settle": power(ENDS | STOPPED, WAKES | FALLS, *MOVES),
    "release": power(LOST | STOPPED, WAKES | FALLS, *MOVES),
    "expire": power(LOST | STOPPED, WAKES | FALLS, *MOVES),
    "take_back": power(LOST | STOPPED, WAKES | FALLS, *MOVES),
    "cancel": power(CANCELS, WAKES | FALLS, "cancel_requested_at", *MOVES),
    "requeue": power(REQUEUES | PARKS),
    "run_now": power({(S, E, Reason.RUN_NOW)}),
    "reprioritise": power(None, None, "priority"),
    "promote": power({(S, E, Reason.DUE)}),
    "defer": power({(E, S, Reason.LOCK_BUSY)}),
    "delete": power(None, WAKES | FALLS, *MOVES, deletes=True),
    "purge": power(deletes=True),
    "forget_keys": power(),
    "discard": power(),
    "pause": power(),
    "resume": power(None, WAKES),
    "turn_pauses": power(None, WAKES | PARKS),
    "set_limits": power(),
    "leader": power(None, WAKES | FALLS, *MOVES),
    "sweep": power(None, WAKES | FALLS, "dispatch_id", "admitted", *MOVES),
    "trip": power(),
    "turn_circuits": power(None, WAKES | BREAKS),
    "unknown_types": power({(S, FAILED, Reason.UNKNOWN_TYPE)}, WAKES | PARKS | FALLS),
}


@dataclass
class Act:
    """One call of a verb: how it is made, what it was told, and what its commits were seen to do."""

    verb: str
    call: Callable[[str], Any]  # with the alias of the connection
    ids: frozenset[UUID] = frozenset()
    named: frozenset[tuple[UUID, UUID]] = frozenset()  # (job, token): what an owner, or a message, says
    worker: UUID | None = None
    claim_id: UUID | None = None
    owns: Callable[[Step, World], bool] | None = None  # of a step and the world before it; None: those of `ids`
    check: Callable[["Act", Any], None] | None = None  # what it answers against what it was seen to do
    errors: tuple[type[BaseException], ...] = ()  # that the verb may answer with
    became: dict[UUID, str] = field(default_factory=dict)  # by token: what an owner's end makes of a job
    begun: World = EMPTY
    steps: list[Step] = field(default_factory=list)
    gone: set[UUID] = field(default_factory=set)

    @property
    def power(self) -> Power:
        """What it may do."""
        return POWERS[self.verb]

    def is_told_of(self, step: Step, before: World) -> bool:
        """Whether the job is one of its own."""
        return self.owns(step, before) if self.owns is not None else step.job in self.ids

    def moved(self, *edges: Edge | set[Edge]) -> list[Step]:
        """Its steps along these edges."""
        wanted: set[Edge] = set()
        for edge in edges:
            wanted |= edge if isinstance(edge, set) else {edge}
        return [step for step in self.steps if (step.was, step.to, step.reason) in wanted]

    def left(self, was: str) -> list[Step]:
        """Its steps out of a state."""
        return [step for step in self.steps if step.was == was]

    def answered(self, answer: Any) -> None:
        """It came to its end."""
        if self.check is not None:
            self.check(self, answer)

    def agrees(self, said: Any, seen: Any) -> None:
        """What it says is what it did."""
        keep(said == seen, f"{self.verb} answers {said}, and did {seen}")
