"""Pages of jobs as the API answers them: filtered, searched, newest or oldest first."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from jobs.models import Job
from jobs.queries.cursor import NEWEST, Cursor
from jobs.queries.jobfilter import JobFilter, created_between, exact_branches, tagged

COLUMNS = (
    "id", "type", "queue", "state", "priority", "progress", "stage", "executions", "attempts_used", "max_attempts",
    "waiting_for", "gate", "run_at", "created_at", "enqueued_at", "started_at", "finished_at", "failure_kind",
    "error_type", "error_message", "unique_key", "origin", "tags", "worker_id", "worker_label", "cancel_requested_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """Rows (dicts of COLUMNS) and the cursor of the next page, None at the end."""

    items: list[dict[str, Any]]
    next_cursor: Cursor | None


def _narrowed(wanted: JobFilter) -> QuerySet[Job]:
    rows = Job.objects.filter(created_between(wanted.created_from, wanted.created_to))
    for column in ("state", "type", "queue"):
        value = getattr(wanted, column)
        if value is not None:
            rows = rows.filter(**{column: value})
    return rows if wanted.tag is None else rows.filter(tagged(wanted.tag))


def _searched_ids(rows: QuerySet[Job], search: str, order_by: str, limit: int) -> list[UUID]:
    """The first `limit` ids over all branches: the best of each branch, merged. One OR would read the whole table."""
    ids: set[UUID] = set()
    for branch in exact_branches(search):
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
