"""How many jobs match: exact up to a bound and within a time, else an estimate that says so."""

from dataclasses import replace
from uuid import UUID

from django.db.models import Q, QuerySet

from jobs.models import Job
from jobs.queries.bounded import WORTH, Count, TooSlow, counted, estimate, within
from jobs.queries.estimates import COUNTED
from jobs.queries.jobfilter import JobFilter, conditions
from jobs.states import State

# In seconds, for one count and for all tabs together.
TIME = 0.05
# As the tabs stand.
SHOWN = (State.ENQUEUED, State.PROCESSING, State.SCHEDULED, State.SUCCEEDED, State.FAILED, State.CANCELLED)


def count(wanted: JobFilter, *, most: int = COUNTED, seconds: float | None = None) -> Count:
    """How many jobs match, in so many seconds. What stands in payloads is not estimated: then `number` is None."""
    return _counts([wanted], most, seconds)[0]


def tabs(wanted: JobFilter, *, seconds: float | None = None) -> dict[State, Count]:
    """The count of each state as the screens show it, with everything else that the filter says."""
    each = [replace(wanted, state=None, shown=str(shown)) for shown in SHOWN]
    return dict(zip(SHOWN, _counts(each, COUNTED, seconds), strict=True))


def _counts(wishes: list[JobFilter], most: int, seconds: float | None) -> list[Count]:
    parts = [_rows(wanted) for wanted in wishes]

    def guesses() -> list[QuerySet[Job]]:
        return [rows for wanted in wishes for rows in _rows(wanted, narrow=False)]

    limit = TIME if seconds is None else seconds
    known = all(wanted.text is None for wanted in wishes)
    found = iter(counted([rows for part in parts for rows in part], most, limit, guesses=guesses if known else None))
    return [total([next(found) for _ in part]) for part in parts]


def _rows(wanted: JobFilter, *, narrow: bool = True) -> list[QuerySet[Job]]:
    return [Job.objects.filter(condition) for condition in conditions(wanted, narrow=narrow)]


def guess(wanted: JobFilter) -> Count:
    """The planner's estimate, where it is worth something: for a sum of which a part is not known."""
    expected = 0 if wanted.text is not None else sum(estimate(rows) for rows in _rows(wanted, narrow=False))
    return Count(expected, estimated=True) if expected >= WORTH else Count(None)


def total(parts: list[Count]) -> Count:
    """The sum; an estimate as soon as one part is, unknown as soon as one part is."""
    if any(part.number is None for part in parts):
        return Count(None)
    return Count(sum(part.number or 0 for part in parts), any(part.estimated for part in parts))


def newer(wanted: JobFilter, floor: UUID, seen: list[UUID], *, most: int = 1000, seconds: float = 0.2) -> int | None:
    """How many match with an id above `floor` that are none of `seen`: up to `most`, None when there was no time."""
    number = 0
    unseen = Q(id__gt=floor) & ~Q(id__in=seen)
    try:
        with within(seconds):
            for condition in conditions(wanted):
                number += Job.objects.filter(condition & unseen).order_by()[: most + 1].count()
    except TooSlow:
        return None
    return number
