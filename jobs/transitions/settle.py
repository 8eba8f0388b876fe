"""The end of executions by their owner: one transaction a batch, under the fence, in doubt found out.

A batch that fails with a data error is halved until the bad row stands alone; that one ends Failed.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db import DatabaseError
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.fingerprint import fingerprint
from jobs.outcomes import Claim, Ending, ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State
from jobs.text import clean, first_line
from jobs.transitions import keys
from jobs.transitions.finish import Finished, finish, seconds
from jobs.transitions.notes import write_logs
from jobs.transitions.probes import probed
from jobs.transitions.sql import fetch, in_transaction, refused
from jobs.transitions.successors import Seats, Successors

log = logging.getLogger(__name__)

# Who finds no row to end looks here: my own end (the answer to my COMMIT was lost), or recovery's WorkerLost. A worker
# that lost a child process writes WorkerLost itself: its ends have a duration, those that others wrote have none.
OWN_END = """
SELECT a.dispatch_id, c.to_state
FROM turno.job_attempts AS a
JOIN turno.job_state_changes AS c
  ON c.job_id = a.job_id AND c.execution = a.ordinal AND c.from_state = 'Processing'
WHERE a.dispatch_id = ANY(%(tokens)s::uuid[]) AND a.worker_id = %(worker_id)s::uuid
  AND (a.outcome <> 'WorkerLost' OR a.duration IS NOT NULL)
"""
TYPES = "SELECT id, type FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[])"
DISCARD = """
UPDATE turno.job_attempts SET discarded_at = now()
WHERE dispatch_id = ANY(%(tokens)s::uuid[]) AND worker_id = %(worker_id)s::uuid AND outcome = 'WorkerLost'
  AND duration IS NULL AND discarded_at IS NULL
"""


@dataclass(slots=True, unsafe_hash=True)
class Settled:
    """What became of one ending: `state` is the job's state now, None when the lease was lost and nothing was written.

    `again` says that an earlier call had written it already (its answer was lost). `successor` is the job that has
    started in its slot, where that was offered.
    """

    dispatch_id: UUID
    state: State | None
    again: bool = False
    successor: Claim | None = field(default=None, compare=False)


def settle(
    endings: Sequence[Ending], *, worker_id: UUID, seats: Seats | None = None, using: str = "default"
) -> list[Settled]:
    """Write the ends of executions that `worker_id` owns; one answer an ending, in order. In slots that it offers
    (`seats`) start those who were woken by these ends.

    Repeating a call is safe: what is written already is answered with `again`. Raises OperationalError when the
    database is away; then nothing is known, and the same call must be made again.
    """
    known: dict[UUID, Settled] = {}
    for batch in _halving(list(endings), worker_id, seats, using):
        known.update((settled.dispatch_id, settled) for settled in batch)
    return [known[ending.dispatch_id] for ending in endings]


def _halving(endings: list[Ending], worker_id: UUID, seats: Seats | None, using: str) -> list[list[Settled]]:
    if not endings:
        return []
    try:
        return [in_transaction(using, lambda cursor: _settle(cursor, endings, worker_id, seats))]
    except (DatabaseError, UnicodeError) as error:
        if not refused(error):
            raise
        if len(endings) > 1:
            middle = len(endings) // 2
            halves = endings[:middle], endings[middle:]
            return [batch for half in halves for batch in _halving(half, worker_id, seats, using)]
        if seats is not None:  # the fault may lie with who would start
            try:
                return [in_transaction(using, lambda cursor: _settle(cursor, endings, worker_id, None))]
            except (DatabaseError, UnicodeError) as again:
                if not refused(again):
                    raise
        bad = unstored(endings[0], error)
        log.error("result_not_stored", extra={"job": str(bad.id), "error": str(error)[:300]})
        return [in_transaction(using, lambda cursor: _settle(cursor, [bad], worker_id, seats))]


def unstored(ending: Ending, error: Exception) -> Ending:
    """The same end without anything that may have kept it from being stored: Failed, with a text of our own."""
    text = clean(first_line(error), 300)
    return replace(
        ending,
        to=State.FAILED,
        outcome=Outcome.FAILED,
        reason=Reason.RESULT_NOT_STORED,
        failure_kind=FailureKind.PERMANENT,
        delay=None,
        waiting_for=None,
        result=None,
        stage=None,
        progress=None,
        logs=(),
        tries=1,
        lost=False,
        exit_code=None,
        signal=None,
        peak_memory=None,
        error=ErrorInfo("ResultError", _("The result could not be stored: %(reason)s") % {"reason": text}),
    )


def _measured(ending: Ending) -> Ending:
    """An owner's end of a lost process always has a duration: OWN_END knows it by that."""
    return replace(ending, duration=0.0) if ending.lost and seconds(ending.duration) is None else ending


def _with_causes(cursor: CursorWrapper, endings: Sequence[Ending]) -> Sequence[Ending]:
    """Ends whose error has no fingerprint, such as those of `unstored`, get that of their job's type: people act on all
    letters of one cause at once."""
    bare = [ending.id for ending in endings if ending.error is not None and not ending.error.fingerprint]
    types = dict(fetch(cursor, TYPES, {"ids": bare})) if bare else {}

    def known(ending: Ending) -> Ending:
        error = ending.error
        if error is None or error.fingerprint or ending.id not in types:
            return ending
        cause = fingerprint(types[ending.id], error.type, error.message)
        return replace(ending, error=replace(error, fingerprint=cause))

    return [known(ending) for ending in endings]


def _settle(cursor: CursorWrapper, endings: Sequence[Ending], worker_id: UUID, seats: Seats | None) -> list[Settled]:
    endings = _with_causes(cursor, endings)
    successors = Successors(seats) if seats else None
    written = finish(cursor, [(worker_id, _measured(ending)) for ending in endings], successors=successors)
    executions = {done.dispatch_id: done.execution for done in written}
    write_logs(
        cursor,
        [(e.id, executions[e.dispatch_id], line) for e in endings if e.dispatch_id in executions for line in e.logs],
    )
    started = successors.claims() if successors else {}
    settled = [Settled(done.dispatch_id, done.state, successor=started.get(done.dispatch_id)) for done in written]
    rest = {ending.dispatch_id for ending in endings} - executions.keys()
    if rest:
        tokens = {"tokens": list(rest), "worker_id": worker_id}
        mine = {token: State(state) for token, state in fetch(cursor, OWN_END, tokens)}
        cursor.execute(DISCARD, tokens)
        settled += [Settled(token, mine.get(token), again=token in mine) for token in rest]
    return settled


LOCK_PROBED = probed("j.id = ANY(%(ids)s::uuid[])")
LEFT = """
SELECT id, dispatch_id, type, at_most_once FROM turno.jobs
WHERE id = ANY(%(ids)s::uuid[]) AND dispatch_id = ANY(%(tokens)s::uuid[]) AND worker_id = %(worker_id)s::uuid
  AND state = 'Processing'
ORDER BY id FOR NO KEY UPDATE
"""


def returned(id_: UUID, token: UUID, *, type_name: str, at_most_once: bool) -> Ending:
    """The end of an execution that its worker broke off: back to the queue, uncharged.

    A job that may run at most once is never repeated by the engine: it ends Failed, Interrupted.
    """
    if not at_most_once:
        return Ending(id_, token, State.ENQUEUED, Outcome.INTERRUPTED, Reason.RELEASED, counted=False)
    text = _("The worker stopped while the job ran; a job of this type is never repeated by itself.")
    return Ending(
        id_,
        token,
        State.FAILED,
        Outcome.INTERRUPTED,
        Reason.NEVER_REPEATED,
        error=ErrorInfo("Interrupted", text, "", fingerprint(type_name, "Interrupted", "")),
        failure_kind=FailureKind.INTERRUPTED,
    )


def release(
    claims: Sequence[tuple[UUID, UUID]], *, worker_id: UUID, started: bool = True, using: str = "default"
) -> list[Finished]:
    """Give back jobs (id, dispatch token) of a worker: only after their handlers are proven to have ended.

    The execution is recorded as Interrupted; with a cancel request pending the job becomes Cancelled. `started` False
    says that no handler was: then a job that may run at most once returns to its queue too. Answers those whose fence
    held.
    """
    if not claims:
        return []
    params = {"ids": [i for i, _ in claims], "tokens": [t for _, t in claims], "worker_id": worker_id}

    def work(cursor: CursorWrapper) -> list[Finished]:
        locked = keys.lock_held(cursor, claims)
        cursor.execute(LOCK_PROBED, params)
        left = fetch(cursor, LEFT, params)
        endings = [returned(i, t, type_name=name, at_most_once=once and started) for i, t, name, once in left]
        return finish(cursor, [(worker_id, ending) for ending in endings], locked=locked) if endings else []

    return in_transaction(using, work)
