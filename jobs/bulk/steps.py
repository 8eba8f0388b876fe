"""One batch of a run: the verb, the cursor and the counters in one transaction, so that a crash counts nothing twice.

A row that somebody holds for long does not hold the run: the batch waits LOCK_WAIT seconds, then smaller ones go on,
and a single one that is still locked is left out ("busy").
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import OperationalError
from django.db.backends.utils import CursorWrapper

from jobs import events
from jobs.bulk import store
from jobs.bulk.acts import VERBS, Target
from jobs.bulk.store import Run
from jobs.bulk.targets import following, still_meant
from jobs.outcomes import Verdict
from jobs.states import State
from jobs.transitions.people import LOCK
from jobs.transitions.sql import fetch, in_transaction, sqlstate

BATCH = 200
SMALLER = 8
# Seconds; well under those after which a run is taken over, so that who waits for a lock does not lose it.
LOCK_WAIT = 3.0
BUSY = "busy"
LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %(wait)s, true)"


class Lost(Exception):
    """Another holder has the run, or it has ended: what was under way has been rolled back."""


def held(run: Run) -> Run:
    """The run as its row says, with a sign of life. Raises Lost when it is not this holder's any more."""
    found = store.beat(run.id, run.holder) if run.holder else None
    if found is None:
        raise Lost
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """The run after a batch, the size of the next one, and whether nothing is left to do."""

    run: Run
    size: int
    last: bool


def step(run: Run, size: int = BATCH) -> Step:
    """Do the next batch, `size` at most. Raises Lost; ValueError for a filter that can't be read."""
    coming = following(run, size)
    try:
        return Step(_batch(run, coming.ids, coming.cursor), min(BATCH, size * SMALLER), coming.last)
    except OperationalError as error:
        if sqlstate(error) != "55P03":
            raise
    run = held(run)
    if len(coming.ids) > 1:
        return Step(run, max(1, min(size, len(coming.ids)) // SMALLER), last=False)
    return Step(_batch(run, [], coming.cursor, busy=len(coming.ids)), size, coming.last)


def _batch(run: Run, ids: Sequence[UUID], cursor_at: UUID | None, *, busy: int = 0) -> Run:
    def work(cursor: CursorWrapper) -> tuple[Run, list[Verdict]]:
        cursor.execute(LOCK_TIMEOUT, {"wait": f"{LOCK_WAIT * 1000:.0f}ms"})
        verdicts = _verdicts(cursor, run, ids) if ids else []
        moved = _counted(run, verdicts, cursor_at, busy)
        state = store.save(cursor, moved)
        if state is None:
            raise Lost
        return replace(moved, state=state), verdicts

    moved, verdicts = in_transaction("default", work)
    changed = [verdict.id for verdict in verdicts if verdict.applied]
    if changed:
        _tell(run.target, changed)
    return moved


def _verdicts(cursor: CursorWrapper, run: Run, ids: Sequence[UUID]) -> list[Verdict]:
    """The verb's; a job that a worker or a person took out of the filter since the look is not touched ("state")."""
    verb, meant = VERBS[run.target, run.act], set(ids)
    states: dict[UUID, State] = {}
    if not run.by_ids and run.target is Target.JOBS:
        states = {row[0]: State(row[1]) for row in fetch(cursor, LOCK, {"ids": list(ids)})}
        meant = still_meant(run, ids) | (meant - states.keys())  # of one that is gone the verb says so
    found = {one.id: one for one in verb([id_ for id_ in ids if id_ in meant], run.actor, run.reason)}
    return [found.get(id_) or Verdict(id_, applied=False, state=states[id_], problem="state") for id_ in ids]


def _tell(target: Target, changed: list[UUID]) -> None:
    if target is Target.LETTERS:
        events.changed(jobs=None, topics=["letters"])
    else:
        events.changed(jobs=changed)


def _counted(run: Run, verdicts: Sequence[Verdict], cursor_at: UUID | None, busy: int) -> Run:
    skipped = Counter(run.skipped)
    skipped.update(verdict.problem for verdict in verdicts if verdict.problem is not None)
    if busy:
        skipped[BUSY] += busy
    return replace(
        run,
        cursor=cursor_at,
        done=run.done + len(verdicts) + busy,
        applied=run.applied + sum(verdict.applied for verdict in verdicts),
        requested=run.requested + sum(verdict.requested for verdict in verdicts),
        skipped=dict(skipped),
    )
