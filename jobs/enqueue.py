"""The door for new jobs: validate, resolve the policy, hash, insert, all in the caller's transaction.

Stored is the payload as it was sent, not the validated model: the hash of a repeat agrees with it, and a handler that
learns a new default applies it. The worker validates again before each attempt.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connections, transaction
from django.utils.translation import gettext as _
from pydantic import BaseModel

from jobs.batch import Batch
from jobs.bounds import KEY_LENGTH, LARGEST_BATCH
from jobs.errors import Conflict, Invalid
from jobs.reconnect import replace_broken
from jobs.requests import JobRequest, check_text
from jobs.requests import request_hash as hash_of
from jobs.transitions.insert import Enqueued, NewJob
from jobs.transitions.sql import NO_SUCH_ROW, sqlstate

__all__ = ["LARGEST_BATCH", "Enqueued", "JobRequest", "enqueue", "enqueue_many"]


def enqueue(
    type: str,
    payload: Mapping[str, Any] | BaseModel | None = None,
    *,
    queue: str | None = None,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: float | None = None,
    unique_key: str | None = None,
    concurrency_key: str | None = None,
    concurrency_limit: int | None = None,
    idempotency_key: str | None = None,
    max_attempts: int | None = None,
    timeout: float | None = None,
    tags: tuple[str, ...] | list[str] = (),
    origin: str | None = None,
    after: tuple[UUID, ...] | list[UUID] = (),
    on_parent_failure: str | None = None,
    owner: str | None = None,
    route: str = "code",
    request_hash: str | None = None,
    using: str = "default",
) -> Enqueued:
    """Accept one job; see JobRequest for the options. In a transaction it exists, and is announced, at its commit.

    `owner` and `route` bind the idempotency key; `request_hash` replaces the hash of this request. A repeat of a key
    answers with the first job (`replayed`), a second job of a unique key with the active one (`duplicate`). The key is
    kept as long as its job, so a repeat of a request that was itself answered by a duplicate is a new request. A
    connection that was closed while the caller rested is replaced, outside of a transaction of the caller's. Whether a
    job that was given `after` may start is looked at after the commit; a parent that is deleted before it makes the
    COMMIT fail (IntegrityError).

    Raises Invalid with `errors` by field, UnknownType, PayloadTooLarge, IdempotencyMismatch, Conflict (a rival with the
    same key is not done; `extra["retry_after"]`). The caller's transaction stays usable after each of them.
    """
    request = JobRequest(
        type=type,
        payload={} if payload is None else payload,
        queue=queue,
        priority=priority,
        run_at=run_at,
        delay=delay,
        unique_key=unique_key,
        concurrency_key=concurrency_key,
        concurrency_limit=concurrency_limit,
        idempotency_key=idempotency_key,
        max_attempts=max_attempts,
        timeout=timeout,
        tags=tags,
        origin=origin,
        after=after,
        on_parent_failure=on_parent_failure,
    )
    batch = Batch(owner, route)
    check_text("request_hash", request_hash, KEY_LENGTH, batch.report)
    batch.add(request)
    batch.raise_problems()
    rows = batch.rows({0: request_hash} if request_hash else {})
    return _settled(lambda: batch.insert(rows, using=using), using)[0]


def enqueue_many(
    requests: Iterable[JobRequest],
    *,
    owner: str | None = None,
    route: str = "code",
    idempotency_key: str | None = None,
    request_hash: str | None = None,
    using: str = "default",
) -> list[Enqueued]:
    """Accept up to LARGEST_BATCH jobs, all or none, and answer each in order. See `enqueue`.

    Errors are named by index and field ("3.payload.rows"). With `idempotency_key` for the batch a repeat of the whole
    batch answers with its first jobs; jobs are then stored under `key#index`. Raises Conflict when a part of that
    batch is no longer kept.
    """
    if not isinstance(requests, Iterable):
        text = _("Expected a list.")
        raise Invalid(text, errors={"jobs": [text]})
    given = list(requests)
    if not 1 <= len(given) <= LARGEST_BATCH:
        text = _("Expected 1 to %(most)d jobs, got %(count)d.") % {"most": LARGEST_BATCH, "count": len(given)}
        raise Invalid(text, errors={"jobs": [text]})
    batch = Batch(owner, route, idempotency_key)
    check_text("request_hash", request_hash, KEY_LENGTH, batch.report)
    for index, request in enumerate(given):
        batch.add(request, f"{index}.")
    batch.raise_problems()
    if idempotency_key is None:
        rows = batch.rows({})
        return _settled(lambda: batch.insert(rows, using=using), using)
    rows = batch.rows(dict.fromkeys(range(len(given)), request_hash or hash_of(given)))

    def whole() -> list[Enqueued]:
        replace_broken(using)
        with transaction.atomic(using=using):
            placed = batch.insert(rows, using=using)
            if any(answer.replayed for answer in placed):
                _refuse_half(rows, placed)
        return placed

    return _settled(whole, using)


def _settled(place: Callable[[], list[Enqueued]], using: str) -> list[Enqueued]:
    """A parent that was deleted just before our own COMMIT made it fail: the second look finds it gone, and says so."""
    joined = connections[using].in_atomic_block
    try:
        return place()
    except IntegrityError as error:
        if joined or sqlstate(error) != NO_SUCH_ROW:
            raise
        return place()


def _refuse_half(rows: list[NewJob], placed: list[Enqueued]) -> None:
    """A repeat must not run again what retention has removed. A job that was a duplicate then left no key, though."""
    gone = [
        index
        for index, (row, answer) in enumerate(zip(rows, placed, strict=True))
        if not answer.replayed and not answer.duplicate and row.unique_key is None
    ]
    if gone:
        text = _("This batch was accepted before; jobs of it that are no longer kept: %(count)d.")
        raise Conflict(text % {"count": len(gone)}, gone=gone)
