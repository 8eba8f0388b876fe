"""What an act over many would do, before it is done: how many, in which states, and a few of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db import connections

from jobs import queries
from jobs.bulk import filters
from jobs.bulk.acts import APPLIES, Act, Target
from jobs.bulk.filters import AnyFilter
from jobs.ids import new_id
from jobs.queries.bounded import TooSlow, within
from jobs.queries.estimates import COUNTED, index_entries
from jobs.queries.jobfilter import JobFilter
from jobs.queries.letterfilter import MATCHES, LetterFilter
from jobs.states import State

SAMPLES = 5
COUNT_TIME = 0.5
BY_ID = """
SELECT state, run_at IS NULL, count(*) FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) GROUP BY 1, 2
"""
LETTERS = f"""
SELECT count(*) FROM (
    SELECT FROM turno.dead_letters AS d
    WHERE d.resolved_at IS NULL AND d.created_at < %(before)s
      AND (%(ids)s::uuid[] IS NULL OR d.id = ANY(%(ids)s::uuid[])) AND {MATCHES}
    LIMIT %(most)s
) AS found
"""
LETTER_SAMPLES = f"""
SELECT d.job_id, d.type, 'Failed', d.queue FROM turno.dead_letters AS d
WHERE d.resolved_at IS NULL AND d.created_at < %(before)s
  AND (%(ids)s::uuid[] IS NULL OR d.id = ANY(%(ids)s::uuid[])) AND {MATCHES}
ORDER BY d.id DESC LIMIT %(most)s
"""
JOB_SAMPLES = """
SELECT id, type, state, queue FROM turno.jobs WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id DESC LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the jobs that the act would meet."""

    id: UUID
    type: str
    state: str
    queue: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What an act applies to. `count` is None when nobody could count in time; `by_state` has the states as shown.

    `id` and `before` are handed back to `start`: then exactly this is done, and a repeated request does it once.
    """

    id: UUID
    before: datetime
    count: int | None
    estimated: bool
    by_state: dict[State, int | None]
    samples: list[Sample]


def _rows(sql: str, **params: object) -> list[tuple[Any, ...]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def preview(
    act: Act,
    target: Target,
    wanted: AnyFilter | None,
    ids: Sequence[UUID] | None,
    *,
    before: datetime,
    samples: int = SAMPLES,
) -> Preview:
    """Count what the act applies to among `ids`, or all that match the filter and are older than `before`."""
    if target is Target.LETTERS:
        return _letters(cast(LetterFilter, wanted) if wanted else LetterFilter(), ids, before, samples)
    if ids is not None:
        return _named(act, ids, before, samples)
    return _matching(act, filters.until(cast(JobFilter, wanted), before), before, samples)


def _letters(wanted: LetterFilter, ids: Sequence[UUID] | None, before: datetime, samples: int) -> Preview:
    params = {"before": before, "ids": None if ids is None else list(ids), **wanted.params()}
    try:
        with within(COUNT_TIME):
            ((count,),) = _rows(LETTERS, most=COUNTED + 1, **params)
            some = [Sample(*row) for row in _rows(LETTER_SAMPLES, most=samples, **params)] if samples else []
    except TooSlow:  # a search through very many
        return Preview(new_id(), before, None, False, {State.FAILED: None}, [])
    if beyond := count > COUNTED:
        count = max(count, index_entries("dead_letters_pending"))
    return Preview(new_id(), before, count, beyond, {State.FAILED: count} if count else {}, some)


def _named(act: Act, ids: Sequence[UUID], before: datetime, samples: int) -> Preview:
    by_state: dict[State, int | None] = {}
    for state, parked, count in _rows(BY_ID, ids=list(ids)):
        if state in APPLIES[Target.JOBS, act] and not (act is Act.RUN_NOW and parked):
            shown = State.ENQUEUED if state == State.SCHEDULED and parked else State(state)
            by_state[shown] = (by_state.get(shown) or 0) + count
    found = [Sample(*row) for row in _rows(JOB_SAMPLES, ids=list(ids), most=samples)] if samples else []
    return Preview(new_id(), before, sum(count or 0 for count in by_state.values()), False, by_state, found)


def _matching(act: Act, wanted: JobFilter, before: datetime, samples: int) -> Preview:
    by_state: dict[State, int | None] = {}
    estimated = False
    for shown, part in filters.splits(wanted, act).items():
        found = queries.count(part, seconds=COUNT_TIME)
        by_state[shown] = found.number
        estimated = estimated or found.estimated
    some: list[Sample] = []
    for part in filters.splits(wanted, act).values():
        if len(some) < samples:
            ids = queries.walk(part, need=samples - len(some), seconds=COUNT_TIME).ids
            some += [Sample(*row) for row in _rows(JOB_SAMPLES, ids=ids, most=samples)] if ids else []
    known = [count for count in by_state.values() if count is not None]
    whole = sum(known) if len(known) == len(by_state) else None
    shown_states = {state: count for state, count in by_state.items() if count != 0}
    return Preview(new_id(), before, whole, estimated and whole is not None, shown_states, some[:samples])
