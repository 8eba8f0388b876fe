"""What may follow of the edge matrix.

`LEGAL` has every pair of verb and situation that changes something; whatever is not in it must change nothing at all.
"""

from dataclasses import dataclass, replace

from jobs.states import Outcome, Reason, State
from tests.transitions.edges import DIED, DURATION, OWNED, Death


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb does to a job. `to` None: the row changes and its state does not. `gone`: the row is deleted."""

    to: State | None = None
    reason: Reason | None = None
    outcome: Outcome | None = None
    counted: int = 0
    lost: int = 0
    duration: float | None = None
    died: Death = (None, None, None)
    letter: bool = False
    asks: bool = False
    gone: bool = False


C = Change
LEGAL: dict[tuple[str, str], Change] = {
    ("claim", "enqueued"): C(State.PROCESSING, Reason.CLAIMED),
    ("claim_next", "enqueued"): C(State.PROCESSING, Reason.CLAIMED),
    ("promote", "due"): C(State.ENQUEUED, Reason.DUE),
    ("defer", "enqueued"): C(State.SCHEDULED, Reason.LOCK_BUSY),
    ("park_unknown", "enqueued"): C(State.SCHEDULED, Reason.PARKED),
    ("open_unknown", "of an unknown type"): C(State.ENQUEUED, Reason.GATE_OPENED),
    ("park_unserved", "enqueued"): C(State.SCHEDULED, Reason.PARKED),
    ("fail_unknown", "of an unknown type"): C(State.FAILED, Reason.UNKNOWN_TYPE, letter=True),
    ("run_now", "scheduled"): C(State.ENQUEUED, Reason.RUN_NOW),
    ("run_now", "due"): C(State.ENQUEUED, Reason.RUN_NOW),
    ("expire", "expired"): C(State.ENQUEUED, Reason.WORKER_LOST, Outcome.WORKER_LOST, counted=1, lost=1),
    ("expire", "expired, cancel asked"): C(State.CANCELLED, Reason.CANCELLED, Outcome.WORKER_LOST, counted=1, lost=1),
    ("cancel", "processing"): C(asks=True),
    ("cancel", "expired"): C(asks=True),
    ("requeue", "failed"): C(State.ENQUEUED, Reason.REQUEUED),
    ("requeue", "cancelled"): C(State.ENQUEUED, Reason.REQUEUED),
}
for _waiting in ("scheduled", "due", "parked", "of an unknown type", "enqueued"):
    LEGAL["cancel", _waiting] = C(State.CANCELLED, Reason.CANCELLED)
for _done in ("succeeded", "failed", "cancelled"):
    LEGAL["delete", _done] = C(gone=True)
for _done in ("succeeded", "cancelled"):  # the failed one has a pending dead letter
    LEGAL["purge", _done] = C(gone=True)
T = DURATION
SETTLED = {
    "settle Succeeded": C(State.SUCCEEDED, Reason.SUCCEEDED, Outcome.SUCCEEDED, counted=1, duration=T),
    "settle Failed": C(State.FAILED, Reason.ATTEMPTS_USED_UP, Outcome.FAILED, counted=1, letter=True, duration=T),
    "settle retry": C(State.SCHEDULED, Reason.RETRY, Outcome.FAILED, counted=1, duration=T),
    "settle snooze": C(State.SCHEDULED, Reason.SNOOZED, Outcome.SNOOZED, duration=T),
    "settle Enqueued": C(State.ENQUEUED, Reason.TAKEN_BACK, Outcome.INTERRUPTED, duration=T),
    "settle Cancelled": C(State.CANCELLED, Reason.CANCELLED, Outcome.CANCELLED, counted=1, duration=T),
    "settle lost": C(State.ENQUEUED, Reason.WORKER_LOST, Outcome.WORKER_LOST, counted=1, lost=1, duration=T, died=DIED),
    "release": C(State.ENQUEUED, Reason.RELEASED, Outcome.INTERRUPTED),
    "take_back": C(State.ENQUEUED, Reason.TAKEN_BACK, Outcome.WORKER_LOST, counted=1, lost=1),
}
for _owned in OWNED:
    LEGAL["renew", _owned] = LEGAL["note", _owned] = LEGAL["begin", _owned] = C()
    for _verb, _change in SETTLED.items():
        if "cancel asked" in _owned and _change.to is not State.SUCCEEDED:
            outcome = _change.outcome if _change.lost else Outcome.CANCELLED
            _change = replace(_change, to=State.CANCELLED, reason=Reason.CANCELLED, outcome=outcome, letter=False)
        LEGAL[_verb, _owned] = _change
