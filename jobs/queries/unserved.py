"""Types that jobs wait for and no live worker of their queue has: since when, how many jobs, when they end Failed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from jobs.conf import conf
from jobs.queuewalk import LEVELS
from jobs.serving import UNKNOWN, WATCHED, unwatched_after

COUNTED = 1000
SHOWN = 20
# A job ends when both have lasted for the grace: that nobody had its type, and that it waits. So of each type the one
# enqueued first is the first to end: the head of one of its priorities.
UNSERVED = f"""
SELECT u.queue, u.type, u.since, extract(epoch FROM now() - u.since)::float8, parked.jobs,
    GREATEST(0, %(grace)s::float8 - extract(epoch FROM now() - GREATEST(u.since, oldest.at)))::float8
FROM (
    SELECT queue, type, since FROM turno.unserved_types AS u
    WHERE {WATCHED} AND u.since <= now() - %(silent)s::float8 * interval '1 second' ORDER BY since, queue, type
) AS u
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
        SELECT FROM turno.jobs WHERE {UNKNOWN} AND queue = u.queue AND gate = u.type
        ORDER BY priority DESC LIMIT %(most)s
    ) AS x
) AS parked
CROSS JOIN LATERAL (
    SELECT min(head.enqueued_at) AS at FROM {LEVELS} CROSS JOIN LATERAL (
        SELECT enqueued_at FROM turno.jobs
        WHERE {UNKNOWN} AND queue = u.queue AND gate = u.type AND priority = p.priority
        ORDER BY enqueued_at LIMIT 1
    ) AS head
) AS oldest
WHERE parked.jobs > 0 ORDER BY u.since, u.queue, u.type LIMIT %(shown)s
"""
ONE = f"""
SELECT extract(epoch FROM now() - u.since)::float8,
    GREATEST(0, %(grace)s::float8 - extract(epoch FROM now() - GREATEST(u.since, %(enqueued_at)s::timestamptz)))::float8
FROM turno.unserved_types AS u WHERE u.queue = %(queue)s AND u.type = %(type)s AND {WATCHED}
"""


@dataclass(frozen=True, slots=True)
class Unserved:
    """A type that parked jobs of a served queue have, and none of its live workers has. `since_for` in seconds;
    `jobs` counted up to 1,000 (`at_least`: there are more); the first of them ends Failed in `fails_in` seconds."""

    queue: str
    type: str
    since: datetime
    since_for: float
    jobs: int
    at_least: bool
    fails_in: float


@dataclass(frozen=True, slots=True)
class Grace:
    """Of one parked job: for how many seconds nobody has had its type, and in how many it ends Failed."""

    unserved_for: float
    fails_in: float


def _params(**more: Any) -> dict[str, Any]:
    settings = conf()
    silent = settings.worker.silent_after
    unwatched = unwatched_after(silent, settings.worker.leadership_lease)
    return {"silent": silent, "unwatched": unwatched, "grace": settings.resilience.unknown_type_grace, **more}


def unserved() -> list[Unserved]:
    """The types that nobody has and jobs are parked for, the longest first; at most 20.

    A type that is missing for a moment, while its workers start again, is none of them.
    """
    with connections["default"].cursor() as cursor:
        cursor.execute(UNSERVED, _params(most=COUNTED + 1, shown=SHOWN))
        return [
            Unserved(queue, type_, since, since_for, min(jobs, COUNTED), jobs > COUNTED, fails_in)
            for queue, type_, since, since_for, jobs, fails_in in cursor.fetchall()
        ]


def grace(queue: str, type_name: str, enqueued_at: datetime | None) -> Grace | None:
    """What a job parked for its type has before it; None while its grace does not run: nobody serves the queue, it is
    paused, or somebody has the type."""
    with connections["default"].cursor() as cursor:
        cursor.execute(ONE, _params(queue=queue, type=type_name, enqueued_at=enqueued_at))
        found = cursor.fetchone()
        return Grace(*found) if found is not None else None
