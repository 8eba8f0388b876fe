"""Recovery: one predicate on the job's row, never a join with workers, never an age (law 3)."""

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.fingerprint import fingerprint
from jobs.outcomes import Ending, ErrorInfo
from jobs.retry import Again, Retry, RetryPolicy, after_loss
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.transitions.finish import Finished, finish
from jobs.transitions.sql import fetch, in_transaction, refused

log = logging.getLogger(__name__)

# The oldest leases first; a row that somebody has locked is skipped, so that it starves no other.
EXPIRED = """
SELECT id, dispatch_id, worker_id, type, attempts_used, max_attempts, lost_count, at_most_once,
       COALESCE(worker_label->>'name', worker_id::text)
FROM turno.jobs
WHERE state = 'Processing' AND lease_expires_at < now() - %(grace)s::float8 * interval '1 second'
ORDER BY lease_expires_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""

PolicyOf = Callable[[str], RetryPolicy]


def expire(
    *,
    grace: float,
    limit: int,
    policy_of: PolicyOf,
    lost_limit: int,
    rng: Random,
    using: str = "default",
) -> list[Finished]:
    """End the executions whose lease ended more than `grace` seconds ago: WorkerLost, at most `limit` a call.

    `policy_of` gives the retry policy of a type. Call again at once while the answer is as long as `limit`.
    """

    def work(cursor: CursorWrapper) -> list[Finished]:
        rows = fetch(cursor, EXPIRED, {"grace": float(grace), "limit": limit})
        endings = [_ending(row, policy_of, lost_limit, rng) for row in rows]
        return _ended(cursor, endings, using)

    return in_transaction(using, work)


def _ended(cursor: CursorWrapper, endings: list[tuple[UUID, Ending, bool]], using: str) -> list[Finished]:
    """Write the ends of rows that are locked here. One that the database refuses must not hide the others: it stays."""
    if not endings:
        return []
    try:
        with transaction.atomic(using=using):
            return finish(cursor, endings)
    except DatabaseError as error:
        if not refused(error):
            raise
        if len(endings) > 1:
            middle = len(endings) // 2
            return _ended(cursor, endings[:middle], using) + _ended(cursor, endings[middle:], using)
        log.error("loss_not_stored", extra={"job": str(endings[0][1].id), "error": str(error)[:300]})
        return []


def _ending(row: Sequence[Any], policy_of: PolicyOf, lost_limit: int, rng: Random) -> tuple[UUID, Ending, bool]:
    id_, token, worker_id, type_, used, allowed, lost_count, at_most_once, worker = row
    declared = policy_of(type_)
    policy = RetryPolicy(allowed, declared.base, declared.factor, declared.cap, declared.jitter)
    text = _("The worker %(worker)s stopped answering.") % {"worker": worker}
    error = ErrorInfo("WorkerLost", text, "", fingerprint(type_, "WorkerLost", ""))
    decision = after_loss(policy, used + 1, lost_count + 1, lost_limit, rng)
    to, reason, delay = State.FAILED, Reason.LOST_TOO_OFTEN, None
    if at_most_once:
        reason = Reason.NEVER_REPEATED
    elif isinstance(decision, Again):
        to, reason = State.ENQUEUED, Reason.WORKER_LOST
    elif isinstance(decision, Retry):
        to, reason, delay = State.SCHEDULED, Reason.WORKER_LOST, decision.delay
    elif used + 1 >= allowed:
        reason = Reason.ATTEMPTS_USED_UP
    ending = Ending(
        id_,
        token,
        to=to,
        outcome=Outcome.WORKER_LOST,
        reason=reason,
        delay=delay,
        waiting_for=Waiting.RETRY if to is State.SCHEDULED else None,
        error=error,
        failure_kind=FailureKind.WORKER_LOST if to is State.FAILED else None,
    )
    return worker_id, ending, True
