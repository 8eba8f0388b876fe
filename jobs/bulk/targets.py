"""What comes next in a run: the ids after its cursor, in their order, as many as a batch holds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from django.db import connections, transaction

from jobs.bulk import filters
from jobs.bulk.acts import APPLIES, Target
from jobs.bulk.store import Run
from jobs.models import Job
from jobs.queries.cursor import OLDEST
from jobs.queries.jobfilter import JobFilter, conditions
from jobs.queries.letterfilter import MATCHES, LetterFilter
from jobs.queries.walking import walk
from jobs.states import FINAL

LOOK = 2.0  # seconds that one look for what matches may take; a rare filter is looked at piece by piece
NAMED = """
SELECT named FROM unnest((SELECT ids FROM turno.bulk_runs WHERE id = %(id)s)) AS named
WHERE named > COALESCE(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
GROUP BY named ORDER BY named LIMIT %(limit)s
"""
LETTERS = f"""
SELECT d.id FROM turno.dead_letters AS d
WHERE d.resolved_at IS NULL AND d.created_at < %(before)s
  AND d.id > COALESCE(%(after)s::uuid, '00000000-0000-0000-0000-000000000000') AND {MATCHES}
ORDER BY d.id LIMIT %(limit)s
"""
ONE_VIEW = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# What ended after the cut-off is not what was counted and confirmed.
ENDED_BEFORE = """
SELECT id FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) AND finished_at < %(before)s ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class Next:
    """The ids of the next batch, ascending. Everything up to `cursor` is dealt with then; `last`: nothing follows."""

    ids: list[UUID]
    cursor: UUID | None
    last: bool


def following(run: Run, size: int) -> Next:
    """What comes after the run's cursor, `size` at most. Raises ValueError for a filter that can't be read."""
    if run.by_ids:
        return _listed(run, _ids(NAMED, id=run.id, after=run.cursor, limit=size), size)
    wanted = filters.read(run.target, run.filter or {})
    if run.target is Target.LETTERS:
        params = cast(LetterFilter, wanted).params()
        return _listed(run, _ids(LETTERS, before=run.before, after=run.cursor, limit=size, **params), size)
    return _walked(run, filters.until(wanted, run.before), size)


def _ids(sql: str, **params: object) -> list[UUID]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return [id_ for (id_,) in cursor.fetchall()]


def _listed(run: Run, ids: list[UUID], size: int) -> Next:
    return Next(ids, ids[-1] if ids else run.cursor, len(ids) < size)


def _walked(run: Run, wanted: JobFilter, size: int) -> Next:
    """The states are walked side by side: only up to where all of them have been looked at is everything known."""
    found: set[UUID] = set()
    reached: list[UUID] = []
    parts = filters.splits(wanted, run.act)
    with _one_view(len(parts) > 1):
        looked = [
            walk(part, order=OLDEST, after=run.cursor, need=size, seconds=LOOK / len(parts)) for part in parts.values()
        ]
    for walked in looked:
        found.update(walked.ids)
        if not walked.done:
            reached.append(walked.reach or run.cursor or UUID(int=0))
    known = sorted(id_ for id_ in found if not reached or id_ <= min(reached))
    ids = known[:size]
    last = not reached and len(known) <= size
    cursor = ids[-1] if len(known) > size else min(reached, default=ids[-1] if ids else run.cursor)
    return Next(_ended_before(run, ids), cursor, last)


@contextmanager
def _one_view(needed: bool) -> Iterator[None]:
    """One view of the table for all states: a job that moves from one to another meanwhile must not slip between."""
    if not needed or connections["default"].in_atomic_block:
        yield
        return
    with transaction.atomic(), connections["default"].cursor() as cursor:
        cursor.execute(ONE_VIEW)
        yield


def _ended_before(run: Run, ids: list[UUID]) -> list[UUID]:
    only_ended = ids and APPLIES[run.target, run.act] <= FINAL
    return _ids(ENDED_BEFORE, ids=ids, before=run.before) if only_ended else ids


def still_meant(run: Run, ids: Sequence[UUID]) -> set[UUID]:
    """Of the ids, whose jobs are locked by now, those that the run's filter still keeps: it was looked at before."""
    if run.by_ids or run.target is Target.LETTERS:  # of a letter nothing changes but that somebody deals with it
        return set(ids)
    wanted = filters.until(filters.read(run.target, run.filter or {}), run.before)
    kept: set[UUID] = set()
    for part in filters.splits(wanted, run.act).values():
        for condition in conditions(part):
            kept.update(Job.objects.filter(condition, id__in=ids).values_list("id", flat=True))
    return set(_ended_before(run, sorted(kept)))
