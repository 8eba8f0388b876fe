"""The one rule of a loss: the execution is charged, the loss is counted, and the retry rule says what the job becomes.

Used for workers that stopped answering (expire), for workers that are proven dead (take_back), and by a worker whose
own child process was lost with a job (its end goes through `settle`, as every end of an owner).
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.fingerprint import fingerprint
from jobs.outcomes import Ending, ErrorInfo
from jobs.retry import Again, Retry, RetryPolicy, after_loss
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.transitions.finish import Finished, finish
from jobs.transitions.settle import returned
from jobs.transitions.sql import fetch, refused

log = logging.getLogger(__name__)
PolicyOf = Callable[[str], RetryPolicy]


class Losable(Protocol):
    """What the rule looks at: a `Claim` has it, and so has a row of `LOST`."""

    @property
    def id(self) -> UUID: ...
    @property
    def dispatch_id(self) -> UUID: ...
    @property
    def type(self) -> str: ...
    @property
    def attempts_used(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def lost_count(self) -> int: ...
    @property
    def at_most_once(self) -> bool: ...


class LostRow(NamedTuple):
    """A Processing job without its owner, as LOST selects it; `worker` is the name that people know.

    `begun` False: its worker had said that it waits for its turn there (`begin`).
    """

    id: UUID
    dispatch_id: UUID
    worker_id: UUID
    type: str
    attempts_used: int
    max_attempts: int
    lost_count: int
    at_most_once: bool
    worker: str
    host: str
    begun: bool


LOST = """
SELECT id, dispatch_id, worker_id, type, attempts_used, max_attempts, lost_count, at_most_once,
       COALESCE(worker_label->>'name', worker_id::text), COALESCE(worker_label->>'host', ''), started_at IS NOT NULL
FROM turno.jobs
"""


def lost_ending(
    lost: Losable,
    *,
    text: str,
    host: str = "",
    policy: RetryPolicy,
    lost_limit: int,
    rng: Random,
    exit_code: int | None = None,
    signal: int | None = None,
    peak_memory: int | None = None,
    at_once: Reason = Reason.WORKER_LOST,
) -> Ending:
    """How an execution ends whose process was lost: WorkerLost, charged, counted as a loss.

    `lost` says how often the job was tried and lost before; its own `max_attempts` wins over the policy's. `text` is
    the error for people, to which `host` and the peak of memory are added. The first loss returns the job to its queue
    (with the reason `at_once`), later ones wait, and at whichever limit comes first it ends Failed; a job that may run
    at most once always does. `exit_code`, `signal` and `peak_memory` (bytes) are those of a child process. The worker
    adds its `duration`: by that an owner's own end is told from one that recovery wrote.
    """
    allowed = replace(policy, max_attempts=lost.max_attempts)
    used = lost.attempts_used + 1
    decision = after_loss(allowed, used, lost.lost_count + 1, lost_limit, rng)
    to, reason, delay = State.FAILED, Reason.LOST_TOO_OFTEN, None
    if lost.at_most_once:
        reason = Reason.NEVER_REPEATED
    elif isinstance(decision, Again):
        to, reason = State.ENQUEUED, at_once
    elif isinstance(decision, Retry):
        to, reason, delay = State.SCHEDULED, Reason.WORKER_LOST, decision.delay
    elif used >= lost.max_attempts:
        reason = Reason.ATTEMPTS_USED_UP
    cause = fingerprint(lost.type, "WorkerLost", "", _death(exit_code, signal))
    return Ending(
        lost.id,
        lost.dispatch_id,
        to=to,
        outcome=Outcome.WORKER_LOST,
        reason=reason,
        delay=delay,
        waiting_for=Waiting.RETRY if to is State.SCHEDULED else None,
        error=ErrorInfo("WorkerLost", _told(text, host, peak_memory), "", cause),
        failure_kind=FailureKind.WORKER_LOST if to is State.FAILED else None,
        lost=True,
        exit_code=exit_code,
        signal=signal,
        peak_memory=peak_memory,
    )


def _told(text: str, host: str, peak_memory: int | None) -> str:
    """The error with what is known besides, a sentence each: where it ran, how much memory it took."""
    told = [text]
    if host:
        told.append(_("It ran on the host %(host)s.") % {"host": host})
    if peak_memory:
        told.append(_("It used at most %(size).1f MiB of memory.") % {"size": peak_memory / 2**20})
    return " ".join(told)


def _death(exit_code: int | None, signal: int | None) -> str:
    """How the process died, as part of the cause: out of memory is not the same trouble as a broken library."""
    if signal is not None:
        return f"signal {signal}"
    return "" if exit_code is None else f"exit {exit_code}"


def end_lost(
    cursor: CursorWrapper,
    select: str,
    params: dict[str, Any],
    ending_of: Callable[[LostRow], Ending],
    *,
    refused: set[UUID],
    locked: Collection[int],
    using: str,
) -> list[Finished]:
    """Lock what `select` (LOST and its condition, `refused` left out) finds, and write the ends; inside the caller's
    transaction, which has locked their keys before (`locked`). What the database refuses stays as it is, and its id
    goes into `refused`."""
    rows = [LostRow(*row) for row in fetch(cursor, select, params | {"refused": list(refused)})]
    endings = [(row.worker_id, ending_of(row) if row.begun else _not_begun(row)) for row in rows]
    return _ended(cursor, endings, refused, locked, using)


def _not_begun(row: LostRow) -> Ending:
    """It waited for its turn in its worker: whatever ended that was not its doing, and it is not charged."""
    return returned(row.id, row.dispatch_id, type_name=row.type, at_most_once=False)


def _ended(
    cursor: CursorWrapper,
    endings: Sequence[tuple[UUID, Ending]],
    bad: set[UUID],
    locked: Collection[int],
    using: str,
) -> list[Finished]:
    """Write the ends of rows that are locked here. One that the database refuses must not hide the others: it stays."""
    if not endings:
        return []
    try:
        with transaction.atomic(using=using):
            return finish(cursor, endings, locked=locked)
    except DatabaseError as error:
        if not refused(error):
            raise
        if len(endings) > 1:
            middle = len(endings) // 2
            halves = endings[:middle], endings[middle:]
            return [done for half in halves for done in _ended(cursor, half, bad, locked, using)]
        log.error("loss_not_stored", extra={"job": str(endings[0][1].id), "error": str(error)[:300]})
        bad.add(endings[0][1].id)
        return []
