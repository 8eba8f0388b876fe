"""The ids of a filter in order, found within a time however rare they are; and how far one came when it was over.

Each branch is asked directly first, for a moment. What that does not answer is walked in chunks of its base, so that
every step is bounded and none is lost: everything up to `reach` is known, and the next walk goes on from there.
"""

import time
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from jobs.models import Job
from jobs.queries.bounded import TooSlow, within
from jobs.queries.cursor import NEWEST
from jobs.queries.jobfilter import Branch, JobFilter, branches

# In seconds: for a direct question, for a chunk, and what a chunk is sized to take.
DIRECT = 0.3
STEP_LEAST, STEP = 0.5, 2.0
AIM = 0.12
FIRST, LEAST, MOST = 500, 25, 40_000


@dataclass(frozen=True, slots=True)
class Walked:
    """`ids` in order. `done`: there are no more than these; else `reach` is the id up to which everything is known.

    `looked`: how many jobs were read one by one, 0 when indexes told it all.
    """

    ids: list[UUID]
    done: bool
    reach: UUID | None
    looked: int


@dataclass(slots=True)
class _Strand:
    """One branch on its way."""

    branch: Branch
    newest: bool
    reach: UUID | None
    found: list[UUID] = field(default_factory=list)
    size: int = FIRST
    looked: int = 0
    asked: bool = False
    done: bool = False

    def _ahead(self) -> QuerySet[Job]:
        rows = Job.objects.all()
        if self.reach is not None:
            rows = rows.filter(id__lt=self.reach) if self.newest else rows.filter(id__gt=self.reach)
        return rows.order_by("-id" if self.newest else "id")

    def ask(self, need: int) -> None:
        """The direct question, within a time that the caller sets."""
        self.asked = True
        self._take(list(self._ahead().filter(self.branch.all).values_list("id", flat=True)[:need]), need)

    def _take(self, ids: list[UUID], need: int, end: UUID | None = None) -> None:
        self.found += ids
        if len(ids) == need:
            self.reach = ids[-1]
        elif end is not None:
            self.reach = end
        else:
            self.done = True

    def step(self, need: int, seconds: float) -> None:
        """One chunk's worth of progress. Raises TooSlow when there can be none."""
        began = time.monotonic()
        ahead = self._ahead().filter(self.branch.base)
        try:
            with within(max(STEP_LEAST, min(STEP, seconds))):
                edge = list(ahead.values_list("id", flat=True)[self.size - 1 : self.size])
                chunk = self._ahead().filter(self.branch.all)
                if edge:
                    chunk = chunk.filter(id__gte=edge[0]) if self.newest else chunk.filter(id__lte=edge[0])
                ids = list(chunk.values_list("id", flat=True)[:need])
        except TooSlow:
            if self.size == LEAST:
                raise
            self.size = max(LEAST, self.size // 5)
            return
        self._take(ids, need, edge[0] if edge else None)
        self.looked += self.size if edge else 0
        took = max(time.monotonic() - began, 0.001)
        self.size = max(LEAST, min(MOST, round(self.size * min(4.0, AIM / took))))


def _ask(strands: list[_Strand], need: int, seconds: float) -> None:
    """Each branch that may be quick is asked once; all in one transaction, as long as none takes too long."""
    while waiting := [strand for strand in strands if not strand.asked and not strand.branch.slow]:
        try:
            with within(seconds):
                for strand in waiting:
                    strand.ask(need)
        except TooSlow:
            continue


def _before(one: UUID, other: UUID, newest: bool) -> bool:
    return one >= other if newest else one <= other


def walk(
    wanted: JobFilter, *, order: str = NEWEST, after: UUID | None = None, need: int = 51, seconds: float = 0.7
) -> Walked:
    """The next `need` ids of the filter after the id `after`, in `order`; fewer when the time is over or they end."""
    newest = order == NEWEST
    deadline = time.monotonic() + seconds
    strands = [_Strand(branch, newest, after) for branch in branches(wanted)]
    stepped = False
    _ask(strands, need, min(DIRECT, seconds))
    while True:
        behind = [strand for strand in strands if not strand.done]
        started = [strand.reach for strand in behind if strand.reach is not None]
        reach = (max(started) if newest else min(started)) if len(started) == len(behind) and started else None
        ids = {id_ for strand in strands for id_ in strand.found}
        if behind:
            ids = {id_ for id_ in ids if reach is not None and _before(id_, reach, newest)}
        sure = sorted(ids, reverse=newest)
        left = max(0.0, deadline - time.monotonic())
        if len(sure) >= need or not behind or (stepped and not left):
            break
        hindmost = next((strand for strand in behind if strand.reach is None or strand.reach == reach), behind[0])
        stepped = True
        try:
            hindmost.step(need, left)
        except TooSlow:
            break
    looked = sum(strand.looked for strand in strands)
    if len(sure) > need:
        return Walked(sure[:need], False, sure[need - 1], looked)
    return Walked(sure, not behind, reach if behind else None, looked)


def created(id_: UUID) -> datetime | None:
    """When this job was made; None when it is gone."""
    return Job.objects.filter(id=id_).values_list("created_at", flat=True).first()
