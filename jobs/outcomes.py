"""Values that pass between the worker and `jobs.transitions`: what was claimed, and how it ended.

Nobody changes one once it is made. What each job makes some of is not `frozen` all the same: that costs eight times as
much to make.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.states import FailureKind, Outcome, Reason, State, Waiting


@dataclass(slots=True, unsafe_hash=True)
class Claim:
    """One execution that a worker owns: the job as it was when it was claimed, and the fencing token. `keyed`: it may
    hold a slot that others wait for."""

    id: UUID
    dispatch_id: UUID
    type: str
    queue: str
    payload: Any
    slot: int
    execution: int
    attempts_used: int
    max_attempts: int
    lost_count: int
    timeout: float | None
    at_most_once: bool
    claimed_at: datetime
    owner: str | None = None
    tags: tuple[str, ...] = ()
    keyed: bool = False

    @property
    def attempt(self) -> int:
        """The number of the attempt that this execution is, from 1."""
        return self.attempts_used + 1


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What went wrong, as text that can be stored: no NUL, bounded."""

    type: str
    message: str
    stack: str = ""
    fingerprint: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Ending:
    """How an execution ended and what the job becomes, decided by the worker and written by `settle`.

    `result` is JSON text or None; `delay` (seconds) and `waiting_for` are set when `to` is Scheduled; `duration` is in
    seconds, measured by the worker on its own monotonic clock. `lost` says that the process which ran the job was lost:
    it adds to the job's lost_count. `exit_code`, `signal` and `peak_memory` (bytes) are those of a process of its own.
    """

    id: UUID
    dispatch_id: UUID
    to: State
    outcome: Outcome
    reason: Reason
    counted: bool = True
    delay: float | None = None
    waiting_for: Waiting | None = None
    result: str | None = None
    error: ErrorInfo | None = None
    failure_kind: FailureKind | None = None
    duration: float | None = None
    progress: int | None = None
    stage: str | None = None
    tries: int = 1
    logs: tuple["LogLine", ...] = field(default=())
    lost: bool = False
    exit_code: int | None = None
    signal: int | None = None
    peak_memory: int | None = None


@dataclass(slots=True, unsafe_hash=True)
class LogLine:
    """A line that a handler wrote: its number within the execution (from 1), level and text.

    `age` is how many seconds before the line was handed over it was written: the instant is the database's.
    """

    number: int
    level: str
    message: str
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person's act did to one job. `state` is the job's state afterwards; None says there is no such job.

    `requested` marks a cancel of a running job: asked, and the worker has yet to stop. `problem` says why nothing
    changed: "not_found", "state", "unique_key", "gate" (a parked job can't be run now) or "resolved" (a dead letter
    that somebody has dealt with before; of an act on letters, `id` is the letter's).
    """

    id: UUID
    applied: bool
    state: State | None
    problem: str | None = None
    requested: bool = False
