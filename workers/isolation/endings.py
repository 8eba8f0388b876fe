"""An Ending on its way from a child to its worker: plain fields out, checked fields in."""

import math
from typing import Any

from jobs.outcomes import Claim, Ending, ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.text import clean
from workers.conclusion import MESSAGE_LENGTH, STACK_LENGTH
from workers.isolation.frames import BrokenFrame

NAME_LENGTH = 200
_EXITS = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SCHEDULED, State.ENQUEUED)
_WAITS = (Waiting.RETRY, Waiting.SNOOZE)


def to_fields(ending: Ending) -> dict[str, Any]:
    """The fields of an end that a child decides: not whose it is, nor what was said, which its worker knows."""
    error = ending.error
    return {
        "to": ending.to,
        "outcome": ending.outcome,
        "reason": ending.reason,
        "counted": ending.counted,
        "delay": ending.delay,
        "waiting_for": ending.waiting_for,
        "result": ending.result,
        "error": [error.type, error.message, error.stack, error.fingerprint] if error else None,
        "failure_kind": ending.failure_kind,
        "duration": ending.duration,
        "tries": ending.tries,
        "peak_memory": ending.peak_memory,
    }


def from_fields(claim: Claim, fields: Any) -> Ending:
    """The end of the claim's execution. Raises BrokenFrame for fields that no child of ours writes."""
    try:
        to, wait = State(fields["to"]), fields["waiting_for"]
        if to not in _EXITS or wait not in (_WAITS if to is State.SCHEDULED else (None,)):
            raise ValueError(f"no exit: {to}, {wait}")
        return Ending(
            claim.id,
            claim.dispatch_id,
            to,
            Outcome(fields["outcome"]),
            Reason(fields["reason"]),
            counted=_of(bool, fields["counted"]),
            delay=_seconds(fields["delay"]) if to is State.SCHEDULED else None,
            waiting_for=Waiting(wait) if wait else None,
            result=None if fields["result"] is None else _of(str, fields["result"]),
            error=_error(fields["error"]),
            failure_kind=FailureKind(fields["failure_kind"]) if to is State.FAILED else None,
            duration=_seconds(fields["duration"]),
            tries=min(_whole(fields["tries"]), 1_000_000),
            peak_memory=None if fields["peak_memory"] is None else _whole(fields["peak_memory"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BrokenFrame(f"no ending: {type(error).__name__}: {error}") from None


def _of[T](kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} instead of {kind.__name__}")
    return value


def _seconds(value: Any) -> float:
    seconds = float(value)
    if isinstance(value, (bool, str)) or not math.isfinite(seconds) or seconds < 0:
        raise ValueError("no duration")
    return seconds


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError("no whole number")
    return value


def _error(fields: Any) -> ErrorInfo | None:
    if fields is None:
        return None
    kind, message, stack, fingerprint = (_of(str, text) for text in fields)
    return ErrorInfo(
        clean(kind, NAME_LENGTH, one_line=True),
        clean(message, MESSAGE_LENGTH),
        clean(stack, STACK_LENGTH),
        clean(fingerprint, NAME_LENGTH),
    )
