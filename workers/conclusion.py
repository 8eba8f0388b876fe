"""From what a handler did to what its job becomes: pure functions, no I/O.

Decided here by the worker, written under the fence by `settle`, which alone knows of a cancel that came meanwhile.
"""

import signal
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any

from django.utils.translation import gettext as _

from jobs import fingerprint as prints
from jobs.errors import JobError, JobTimeout, Refused, Snooze
from jobs.outcomes import Claim, Ending, ErrorInfo
from jobs.retry import Retry, RetryPolicy, decide
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.text import clean, signal_name
from jobs.transitions import lost_ending, returned
from workers import identity
from workers.leases import Interrupt
from workers.stacks import class_name, members, own_frame, stack_of
from workers.transience import is_permanent

MESSAGE_LENGTH = 4_000
STACK_LENGTH = 60_000
LONGEST_WAIT = 10 * 366 * 86_400.0  # seconds, between two executions


def describe(type_name: str, error: BaseException, *, private: bool = False) -> ErrorInfo:
    """An exception as storable text, whatever it holds: never raises, bounded in length, depth and breadth.

    `private` keeps what may hold a secret out: of an error that the handler did not word itself (as a JobError) only
    the class is stored, and no stack at all.
    """
    kind, frame = class_name(error), own_frame(error)
    message = _message(error)
    if private:
        worded = issubclass(type(error), (JobError, Refused))
        return ErrorInfo(kind, message if worded else "", "", prints.fingerprint(type_name, kind, "", frame))
    stack = stack_of(error, STACK_LENGTH)
    return ErrorInfo(kind, message, stack, prints.fingerprint(type_name, kind, message, frame))


def _message(error: BaseException) -> str:
    """The text of an exception. That of a group says little: its first error is told with it, by which people, and
    fingerprints, know the cause."""
    try:
        text = clean(error, MESSAGE_LENGTH)
    except BaseException as second:  # noqa: BLE001  (an exception whose text fails has no text)
        text = _("(its message can't be shown: %(error)s)") % {"error": class_name(second)}
    if not issubclass(type(error), BaseExceptionGroup):
        return text
    first = members(error)[0]
    if issubclass(type(first), BaseExceptionGroup):  # of too many
        return text
    return clean(f"{text}: {class_name(first)}: {_message(first)}", MESSAGE_LENGTH)


def succeeded(claim: Claim, result: str | None) -> Ending:
    """The handler returned."""
    return Ending(claim.id, claim.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED, result=result)


def told(claim: Claim, ending: Ending, state: State | None) -> dict[str, Any]:
    """What the log says of an end, and of the job's state after it."""
    what = {
        "job": str(claim.id),
        "type": claim.type,
        "attempt": claim.attempt,
        "execution": claim.execution,
        "outcome": str(ending.outcome),
        "state": str(state) if state else None,
        "seconds": round(ending.duration or 0.0, 3),
    }
    return what | {"error": ending.error.type} if ending.error else what


def snoozed(claim: Claim, snooze: Snooze) -> Ending:
    """The handler asked to run later; no attempt is counted."""
    return Ending(
        claim.id,
        claim.dispatch_id,
        State.SCHEDULED,
        Outcome.SNOOZED,
        Reason.SNOOZED,
        counted=False,
        delay=min(LONGEST_WAIT, snooze.delay) if snooze.delay == snooze.delay else 0.0,
        waiting_for=Waiting.SNOOZE,
    )


def released(claim: Claim) -> Ending:
    """The worker ended the handler for reasons of its own: the job returns, uncharged, if it may be repeated."""
    return returned(claim.id, claim.dispatch_id, type_name=claim.type, at_most_once=claim.at_most_once)


def never_started(claim: Claim) -> Ending:
    """The worker stops before the handler was started: the job returns, whether it may be repeated or not."""
    return returned(claim.id, claim.dispatch_id, type_name=claim.type, at_most_once=False)


def not_alone(claim: Claim, delay: float) -> Ending:
    """No worker had time for a job that must run alone: it comes again in `delay` seconds; no attempt is counted."""
    return replace(
        never_started(claim), to=State.SCHEDULED, reason=Reason.NOT_ALONE, delay=delay, waiting_for=Waiting.RETRY
    )


def cancelled(claim: Claim) -> Ending:
    """The handler stopped because somebody cancelled the job."""
    return Ending(claim.id, claim.dispatch_id, State.CANCELLED, Outcome.CANCELLED, Reason.CANCELLED)


def failed(claim: Claim, error: BaseException, declared: RetryPolicy, rng: Random, *, private: bool = False) -> Ending:
    """The handler raised: dead at once when permanent, else what the retry rule says."""
    info = describe(claim.type, error, private=private)
    timed_out = isinstance(error, JobTimeout)
    outcome = Outcome.TIMED_OUT if timed_out else Outcome.FAILED
    if is_permanent(error):
        return _dead(claim, info, outcome, Reason.PERMANENT, FailureKind.PERMANENT)
    allowed = replace(declared, max_attempts=claim.max_attempts)
    decision = decide(allowed, claim.attempt, rng)
    if isinstance(decision, Retry) and not claim.at_most_once:
        return Ending(
            claim.id,
            claim.dispatch_id,
            State.SCHEDULED,
            outcome,
            Reason.RETRY,
            delay=min(LONGEST_WAIT, decision.delay),
            waiting_for=Waiting.RETRY,
            error=info,
        )
    kind = FailureKind.TIMEOUT if timed_out else FailureKind.ERROR
    return _dead(claim, info, outcome, Reason.ATTEMPTS_USED_UP, kind)


def _dead(claim: Claim, info: ErrorInfo, outcome: Outcome, reason: Reason, kind: FailureKind) -> Ending:
    return Ending(claim.id, claim.dispatch_id, State.FAILED, outcome, reason, error=info, failure_kind=kind)


def interrupted(claim: Claim, why: Interrupt, error: BaseException, declared: RetryPolicy, rng: Random) -> Ending:
    """The handler ended by an exception after it was asked to stop: what asked says what the job becomes."""
    if why is Interrupt.CANCELLED:
        return cancelled(claim)
    if why is Interrupt.TIMEOUT:
        return failed(claim, error, declared, rng)
    return released(claim)


class Fault(StrEnum):
    """Why a handler's process was ended, by its worker or its own watchdog, that nobody had asked to stop; the last:
    why there is none."""

    UNREADABLE = "unreadable"
    CLOSED = "closed"
    ABANDONED = "abandoned"
    UNHEARD = "unheard"
    STILLBORN = "stillborn"


@dataclass(frozen=True, slots=True)
class Death:
    """How a handler's own process ended: what the system says, as far as it is known (`peak_memory` in bytes), and
    `fault` when this worker had a reason of its own to end it."""

    exit_code: int | None = None
    signal: int | None = None
    peak_memory: int | None = None
    fault: Fault | None = None

    def text(self) -> str:
        """One sentence for people."""
        if self.fault is not None:
            return _fault_text(self.fault)
        if self.signal is not None:
            text = _("The process that ran the job was killed by signal %(number)d (%(name)s).")
            if self.signal == signal.SIGKILL:  # nobody here sent it
                text = _(
                    "The process that ran the job was killed by signal %(number)d (%(name)s): maybe memory ran out."
                )
            return text % {"number": self.signal, "name": signal_name(self.signal) or f"SIG{self.signal}"}
        return _("The process that ran the job ended by itself, with exit code %(code)d.") % {
            "code": self.exit_code or 0
        }


def _fault_text(fault: Fault) -> str:
    if fault is Fault.UNREADABLE:
        return _("The process that ran the job was ended: what it sent to its worker could not be read.")
    if fault is Fault.CLOSED:
        return _("The process that ran the job was ended: it had closed its connection to the worker.")
    if fault is Fault.UNHEARD:
        return _("The process that ran the job ended itself: it could not hear its worker any more.")
    if fault is Fault.STILLBORN:
        return _("No process could be started for the job: each one ended before it had begun.")
    return _("The process that ran the job was ended, because the process that watches it had died.")


def lost(claim: Claim, death: Death, declared: RetryPolicy, lost_limit: int, rng: Random) -> Ending:
    """The handler's own process ended before the handler did, and nobody here had asked it to."""
    return lost_ending(
        claim,
        text=death.text(),
        host=identity.host(),
        policy=declared,
        lost_limit=lost_limit,
        rng=rng,
        exit_code=death.exit_code,
        signal=death.signal,
        peak_memory=death.peak_memory,
    )
