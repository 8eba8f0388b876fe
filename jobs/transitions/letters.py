"""What people do to dead letters: requeue their jobs, or discard them. Each answers with a verdict a letter.

Locks as everywhere: jobs by id, then letters by id. Whether a letter is pending is read under both.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Verdict
from jobs.states import State
from jobs.transitions.parents import lock_parents
from jobs.transitions.people import LOCK, requeue
from jobs.transitions.sql import fetch, in_transaction

JOBS_OF = "SELECT id, job_id FROM turno.dead_letters WHERE id = ANY(%(ids)s::uuid[])"
LOCK_LETTERS = """
SELECT id, resolved_at IS NULL FROM turno.dead_letters
WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE
"""
DISCARD = """
UPDATE turno.dead_letters
SET resolved_at = now(), resolved_how = 'discarded', resolved_by = %(actor)s::text
WHERE id = ANY(%(ids)s::uuid[]) AND resolved_at IS NULL
"""


class _Locked:
    """The named letters with their jobs, all rows locked: what is read here holds until the transaction ends."""

    def __init__(self, cursor: CursorWrapper, ids: Sequence[UUID], *, with_parents: bool = False) -> None:
        self.job_of: dict[UUID, UUID] = dict(fetch(cursor, JOBS_OF, {"ids": list(ids)}))
        named = sorted(set(self.job_of.values()))
        if with_parents:
            lock_parents(cursor, named)
        self.states = {row[0]: State(row[1]) for row in fetch(cursor, LOCK, {"ids": named})} if named else {}
        self.pending: dict[UUID, bool] = dict(fetch(cursor, LOCK_LETTERS, {"ids": list(ids)})) if named else {}

    def verdict(self, id_: UUID) -> Verdict | None:
        """What keeps the letter from being acted on; None when nothing does."""
        if id_ not in self.pending:  # gone with its job
            return Verdict(id_, applied=False, state=None, problem="not_found")
        state = self.states.get(self.job_of[id_])
        return None if self.pending[id_] else Verdict(id_, applied=False, state=state, problem="resolved")


def _each(ids: Sequence[UUID], locked: _Locked, open_: Callable[[UUID], Verdict]) -> list[Verdict]:
    return [locked.verdict(id_) or open_(id_) for id_ in ids]


def discard(ids: Sequence[UUID], *, actor: str | None = None, using: str = "default") -> list[Verdict]:
    """Resolve pending dead letters as discarded; their jobs stay as they are, and may now be deleted by retention.

    A letter that somebody has resolved before is left ("resolved").
    """

    def work(cursor: CursorWrapper) -> list[Verdict]:
        locked = _Locked(cursor, ids)
        pending = [id_ for id_, is_pending in locked.pending.items() if is_pending]
        if pending:
            cursor.execute(DISCARD, {"ids": pending, "actor": actor})
        return _each(ids, locked, lambda id_: Verdict(id_, applied=True, state=locked.states[locked.job_of[id_]]))

    return in_transaction(using, work)


def requeue_letters(ids: Sequence[UUID], *, actor: str | None = None, using: str = "default") -> list[Verdict]:
    """Requeue the jobs of pending dead letters, which resolves these; problems as in `requeue`, or "resolved".

    An old letter, resolved before, does not requeue a job that has failed again since.
    """

    def work(cursor: CursorWrapper) -> list[Verdict]:
        locked = _Locked(cursor, ids, with_parents=True)
        jobs = [locked.job_of[id_] for id_, is_pending in locked.pending.items() if is_pending]
        moved = {verdict.id: verdict for verdict in requeue(jobs, actor=actor, using=using)}
        return _each(ids, locked, lambda id_: replace(moved[locked.job_of[id_]], id=id_))

    return in_transaction(using, work)
