"""Pages of jobs: filtered, searched, newest or oldest first."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from jobs.bounds import is_type
from jobs.models import Job
from jobs.queries.cursor import NEWEST, Cursor, first_id_of

COLUMNS = (
    "id", "type", "queue", "state", "priority", "progress", "stage", "executions", "attempts_used", "max_attempts",
    "waiting_for", "gate", "run_at", "created_at", "enqueued_at", "started_at", "finished_at", "failure_kind",
    "error_type", "error_message", "unique_key", "origin", "tags", "worker_id", "worker_label", "cancel_requested_at",
)  # fmt: skip
# An id carries the enqueuing machine's clock, `created_at` the database's: how far the two may stand apart while the
# primary key still narrows a search by instants.
SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None asks nothing. `search` is an id, or exactly a type, a queue or a unique key."""

    state: str | None = None
    type: str | None = None
    queue: str | None = None
    tag: str | None = None
    search: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows (dicts of COLUMNS) and the cursor of the next page, None at the end."""

    items: list[dict[str, Any]]
    next_cursor: Cursor | None


def _millis(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


def _shift(instant: datetime, by: timedelta) -> datetime:
    try:
        return instant + by
    except OverflowError:
        return instant


def _narrowed(wanted: JobFilter) -> QuerySet[Job]:
    rows = Job.objects.all()
    for column in ("state", "type", "queue"):
        value = getattr(wanted, column)
        if value is not None:
            rows = rows.filter(**{column: value})
    if wanted.tag is not None:
        rows = rows.filter(tags__contains=[wanted.tag]).exclude(tags=[])  # the index holds no job without tags
    if wanted.created_from is not None:
        floor = first_id_of(_millis(_shift(wanted.created_from, -SKEW)))
        rows = rows.filter(created_at__gte=wanted.created_from, id__gte=floor)
    if wanted.created_to is not None:
        ceiling = first_id_of(_millis(_shift(wanted.created_to, SKEW)))
        rows = rows.filter(created_at__lt=wanted.created_to, id__lt=ceiling)
    return rows


def _branches(search: str) -> list[Q]:
    """What a search means, each a condition with an index of its own. The text is compared, never a pattern."""
    found = [Q(unique_key=search)]
    if is_type(search):
        found += [Q(type=search), Q(queue=search)]
    with suppress(ValueError):
        found.append(Q(id=UUID(search)))
    return found


def _searched_ids(rows: QuerySet[Job], search: str, order_by: str, limit: int) -> list[UUID]:
    """The first `limit` ids over all branches: the best of each branch, merged. One OR would read the whole table."""
    ids: set[UUID] = set()
    for branch in _branches(search):
        ids.update(rows.filter(branch).order_by(order_by).values_list("id", flat=True)[:limit])
    return sorted(ids, reverse=order_by.startswith("-"))[:limit]


def page(
    wanted: JobFilter, *, size: int = 50, order: str = NEWEST, after: Cursor | None = None, number: int = 1
) -> Page:
    """A page of jobs. With `after` the page that follows it, in its order; else the `number`-th (from 1) in `order`."""
    order = after.order if after is not None else order
    order_by = "-id" if order == NEWEST else "id"
    rows = _narrowed(wanted)
    if after is not None:
        rows = rows.filter(id__lt=after.id) if order == NEWEST else rows.filter(id__gt=after.id)
    start = 0 if after is not None else (number - 1) * size
    if wanted.search is not None:
        ids = _searched_ids(rows, wanted.search, order_by, start + size + 1)[start:]
        found = list(Job.objects.filter(id__in=ids).order_by(order_by).values(*COLUMNS))
    else:
        found = list(rows.order_by(order_by).values(*COLUMNS)[start : start + size + 1])
    items = found[:size]
    return Page(items, Cursor(order, items[-1]["id"]) if len(found) > size else None)
