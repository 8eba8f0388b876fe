"""Who stands in the way of a new job: the holders of its unique key and of its idempotency key."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.transitions.sql import fetch

HOLDERS = """
SELECT unique_key, id, state FROM turno.jobs
WHERE unique_key = ANY(%(keys)s::text[]) AND state IN ('Enqueued', 'Processing', 'Scheduled')
"""
FIRSTS = """
SELECT idempotency_key, request_hash, id, state FROM turno.jobs
WHERE {owner} AND route = %(route)s::text AND idempotency_key = ANY(%(keys)s::text[])
"""

type IdempotencyKey = tuple[str | None, str | None, str | None]


def holders(cursor: CursorWrapper, keys: Sequence[str]) -> dict[str, tuple[UUID, str]]:
    """(id, state) of the active jobs that hold these unique keys."""
    return {key: (id_, state) for key, id_, state in fetch(cursor, HOLDERS, {"keys": list(keys)})} if keys else {}


def firsts(cursor: CursorWrapper, keys: Iterable[IdempotencyKey]) -> dict[IdempotencyKey, tuple[str, UUID, str]]:
    """(request hash, id, state) of the jobs that hold these idempotency keys, by (owner, route, key)."""
    wanted: dict[tuple[str | None, str | None], list[str]] = {}
    for owner, route, key in keys:
        if key is not None:
            wanted.setdefault((owner, route), []).append(key)
    found: dict[IdempotencyKey, tuple[str, UUID, str]] = {}
    for (owner, route), named in wanted.items():
        # "IS NOT DISTINCT FROM" would not use the index.
        sql = FIRSTS.format(owner="owner IS NULL" if owner is None else "owner = %(owner)s::text")
        for key, *first in fetch(cursor, sql, {"owner": owner, "route": route, "keys": named}):
            found[owner, route, key] = (first[0], first[1], first[2])
    return found
