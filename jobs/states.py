"""The life of a job as data: states, legal transitions, reasons, and what one execution may end as.

                 due, run now, gate opened
      Scheduled ---------------------------> Enqueued <------------------+
        |   ^  ^                              |  |  ^                    |
        |   |  +---- parked, lock busy -------+  |  |                    |
        |   |                        claimed     |  | worker lost        |
        |   |                                    v  | (first time),      |
        |   +-- retry, snooze, circuit open, -- Processing  released     |
        |       lost again                       |  |  |                 |
        |                                        |  |  +--> Succeeded    |
        |  unknown type                          |  +-----> Cancelled ---+ requeued (or Scheduled,
        +------------------------------------> Failed ------------------+ parked at once)
        +--> Cancelled <--- cancelled --- Enqueued

The database holds the same table as a CHECK on `job_state_changes` (built from EDGES).
"""

from enum import StrEnum


class State(StrEnum):
    """The six states of a job."""

    SCHEDULED = "Scheduled"
    ENQUEUED = "Enqueued"
    PROCESSING = "Processing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
ACTIVE = frozenset(State) - FINAL

# (from, to); None is a job that did not exist.
EDGES: tuple[tuple[State | None, State], ...] = (
    (None, State.SCHEDULED),
    (None, State.ENQUEUED),
    (State.SCHEDULED, State.ENQUEUED),
    (State.SCHEDULED, State.FAILED),
    (State.SCHEDULED, State.CANCELLED),
    (State.ENQUEUED, State.PROCESSING),
    (State.ENQUEUED, State.SCHEDULED),
    (State.ENQUEUED, State.CANCELLED),
    (State.PROCESSING, State.SUCCEEDED),
    (State.PROCESSING, State.SCHEDULED),
    (State.PROCESSING, State.ENQUEUED),
    (State.PROCESSING, State.FAILED),
    (State.PROCESSING, State.CANCELLED),
    (State.FAILED, State.ENQUEUED),
    (State.FAILED, State.SCHEDULED),
    (State.CANCELLED, State.ENQUEUED),
    (State.CANCELLED, State.SCHEDULED),
)


class Reason(StrEnum):
    """Why a job changed state; stored with each change, worded for people by the screens."""

    CREATED = "created"
    DUE = "due"
    RUN_NOW = "run_now"
    GATE_OPENED = "gate_opened"
    CLAIMED = "claimed"
    PARKED = "parked"
    LOCK_BUSY = "lock_busy"
    NOT_ALONE = "not_alone"
    SUCCEEDED = "succeeded"
    RETRY = "retry"
    SNOOZED = "snoozed"
    CIRCUIT_OPEN = "circuit_open"
    WORKER_LOST = "worker_lost"
    RELEASED = "released"
    TAKEN_BACK = "taken_back"
    ATTEMPTS_USED_UP = "attempts_used_up"
    PERMANENT = "permanent"
    LOST_TOO_OFTEN = "lost_too_often"
    BUSINESS = "business"
    RESULT_NOT_STORED = "result_not_stored"
    NEVER_REPEATED = "never_repeated"
    UNKNOWN_TYPE = "unknown_type"
    CANCELLED = "cancelled"
    PARENT_FAILED = "parent_failed"
    REQUEUED = "requeued"


class Outcome(StrEnum):
    """How one execution ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    CANCELLED = "Cancelled"
    WORKER_LOST = "WorkerLost"
    INTERRUPTED = "Interrupted"
    SNOOZED = "Snoozed"
    BUSINESS = "Business"


class FailureKind(StrEnum):
    """Why a job ended Failed."""

    ERROR = "error"
    PERMANENT = "permanent"
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    INTERRUPTED = "interrupted"
    BUSINESS = "business"
    UNKNOWN_TYPE = "unknown_type"


class Waiting(StrEnum):
    """What a Scheduled job waits for: an instant (the first four) or a gate (parked)."""

    DUE = "due"
    RETRY = "retry"
    SNOOZE = "snooze"
    LOCK = "lock"
    PARENTS = "parents"
    CONCURRENCY_KEY = "concurrency_key"
    TYPE_LIMIT = "type_limit"
    RATE = "rate"
    PAUSE = "pause"
    CIRCUIT = "circuit"
    UNKNOWN_TYPE = "unknown_type"


TIMED = (Waiting.DUE, Waiting.RETRY, Waiting.SNOOZE, Waiting.LOCK)
PARKED = tuple(w for w in Waiting if w not in TIMED)
# Gates that open for some of those who wait, and not for all at once.
GATED = (Waiting.CONCURRENCY_KEY, Waiting.TYPE_LIMIT, Waiting.RATE, Waiting.PAUSE)
