"""An Ending on its way from a child to its worker: plain fields out, checked fields in."""

from typing import Any, NamedTuple

from jobs.outcomes import Claim, Ending, ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.text import clean
from workers.conclusion import LONGEST_WAIT, MESSAGE_LENGTH, STACK_LENGTH
from workers.isolation.frames import BrokenFrame

NAME_LENGTH = 200
_ENDED = (Outcome.FAILED, Outcome.TIMED_OUT)
_KINDS = (FailureKind.ERROR, FailureKind.PERMANENT, FailureKind.TIMEOUT, FailureKind.INTERRUPTED)


class _Exit(NamedTuple):
    """What goes with an exit: whether it counts, what is waited for then, and whether there is an error."""

    counted: bool = True
    waiting: Waiting | None = None
    error: bool = False


_EXITS = {
    (State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED): _Exit(),
    (State.CANCELLED, Outcome.CANCELLED, Reason.CANCELLED): _Exit(),
    (State.ENQUEUED, Outcome.INTERRUPTED, Reason.RELEASED): _Exit(counted=False),
    (State.FAILED, Outcome.INTERRUPTED, Reason.NEVER_REPEATED): _Exit(error=True),
    (State.SCHEDULED, Outcome.SNOOZED, Reason.SNOOZED): _Exit(counted=False, waiting=Waiting.SNOOZE),
    **{(State.SCHEDULED, ended, Reason.RETRY): _Exit(waiting=Waiting.RETRY, error=True) for ended in _ENDED},
    **{
        (State.FAILED, ended, reason): _Exit(error=True)
        for ended in _ENDED
        for reason in (Reason.PERMANENT, Reason.ATTEMPTS_USED_UP)
    },
}


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
        to, outcome, reason = State(fields["to"]), Outcome(fields["outcome"]), Reason(fields["reason"])
        way = _EXITS[to, outcome, reason]
        error, result, kind = _error(fields["error"]), fields["result"], fields["failure_kind"]
        told = _Exit(_of(bool, fields["counted"]), fields["waiting_for"], error is not None)
        if told != way or (result is not None and to is not State.SUCCEEDED) or (kind is None) == (to is State.FAILED):
            raise ValueError(f"no such end: {to}, {told}")
        if kind is not None and kind not in _KINDS:
            raise ValueError(f"no such failure: {kind}")
        return Ending(
            claim.id,
            claim.dispatch_id,
            to,
            outcome,
            reason,
            counted=way.counted,
            delay=_seconds(fields["delay"]) if to is State.SCHEDULED else None,
            waiting_for=way.waiting,
            result=None if result is None else _of(str, result),
            error=error,
            failure_kind=None if kind is None else FailureKind(kind),
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
    if isinstance(value, (bool, str)) or not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError("no duration")
    return seconds


def _whole(value: Any) -> int:
    """A number of bytes, or of times."""
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
