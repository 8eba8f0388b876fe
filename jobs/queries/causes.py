"""The dead letters by their cause: how many, since when, with the newest one as the example.

The work is bounded whatever there is: causes are walked by an index that has all that counting needs, at most 5,000
of them and 100,000 letters; what lies beyond is said (`partial`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connections

from jobs.fingerprint import normalised
from jobs.queries.estimates import COUNTED, index_entries
from jobs.queries.letterfilter import MATCHES, LetterFilter

# What a tab shows, as conditions on `d`: the first words of an index each.
TABS = {
    "pending": "d.resolved_at IS NULL",
    "requeued": "d.resolved_at IS NOT NULL AND d.resolved_how = 'requeued'",
    "discarded": "d.resolved_at IS NOT NULL AND d.resolved_how = 'discarded'",
}
ORDERS = {
    "count": "letters DESC, last_at DESC, fingerprint",
    "newest": "last_at DESC, fingerprint",
}
MOST_LETTERS = 100_000
MOST_CAUSES = 5_000
HOURS = 24
# {tab} and {order} are among the texts above. Letters are looked at in the order of the index, and no more than the
# bound, before any filter; OFFSET 0 keeps the planner at it. Columns that nothing asks for are not read: then the
# index alone answers.
GROUPED = """
WITH RECURSIVE names AS (
    (SELECT fingerprint, 1 AS place FROM turno.dead_letters AS d
     WHERE {tab} AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s::text)
     ORDER BY fingerprint LIMIT 1)
    UNION ALL
    SELECT next.fingerprint, n.place + 1 FROM names AS n CROSS JOIN LATERAL (
        SELECT fingerprint FROM turno.dead_letters AS d
        WHERE {tab} AND fingerprint > n.fingerprint ORDER BY fingerprint LIMIT 1
    ) AS next
    WHERE %(fingerprint)s::text IS NULL AND n.place <= %(causes)s
), grouped AS MATERIALIZED (
    SELECT fingerprint, count(*) AS looked, count(*) FILTER (WHERE keeps) AS letters,
        min(created_at) FILTER (WHERE keeps) AS first_at, max(created_at) FILTER (WHERE keeps) AS last_at
    FROM (
        SELECT n.fingerprint, d.created_at, d.keeps FROM names AS n CROSS JOIN LATERAL (
            SELECT d.created_at, {matches} AS keeps
            FROM turno.dead_letters AS d WHERE {tab} AND d.fingerprint = n.fingerprint OFFSET 0
        ) AS d LIMIT %(most)s
    ) AS looked
    GROUP BY fingerprint
), kept AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM grouped
    WHERE letters > 0 ORDER BY place LIMIT %(size)s OFFSET %(offset)s
), totals AS (
    SELECT count(*) FILTER (WHERE letters > 0) AS causes, COALESCE(sum(letters), 0) AS letters,
        COALESCE(sum(looked), 0) >= %(most)s OR count(*) > %(causes)s AS partial
    FROM grouped
)
SELECT t.causes, t.letters, t.partial, k.fingerprint, k.letters, k.first_at, k.last_at,
    GREATEST(0, extract(epoch FROM now() - k.first_at))::float8,
    GREATEST(0, extract(epoch FROM now() - k.last_at))::float8,
    newest.id, newest.job_id, newest.type, newest.failure_kind, newest.error_type, newest.error_message, newest.stack,
    hourly.counts, served.queues
FROM totals AS t LEFT JOIN kept AS k ON true
LEFT JOIN LATERAL (
    SELECT * FROM turno.dead_letters AS d
    WHERE {tab} AND d.fingerprint = k.fingerprint AND d.created_at = k.last_at AND {matches}
    ORDER BY d.id DESC LIMIT 1
) AS newest ON true
LEFT JOIN LATERAL (
    SELECT jsonb_object_agg(hour, letters)::text AS counts FROM (
        SELECT LEAST(floor(extract(epoch FROM now() - d.created_at) / 3600), 23)::int AS hour, count(*) AS letters
        FROM turno.dead_letters AS d
        WHERE {tab} AND d.fingerprint = k.fingerprint AND d.created_at > now() - interval '24 hours' AND {matches}
        GROUP BY 1
    ) AS x
) AS hourly ON true
LEFT JOIN LATERAL (
    SELECT array_agg(DISTINCT queue) AS queues FROM (
        SELECT d.queue FROM turno.dead_letters AS d
        WHERE {tab} AND d.fingerprint = k.fingerprint AND {matches} ORDER BY d.created_at DESC LIMIT 1000
    ) AS x
) AS served ON true
ORDER BY k.place
"""
CAUSES = {
    (tab, order): GROUPED.format(tab=condition, order=by, matches=f"({MATCHES})")
    for tab, condition in TABS.items()
    for order, by in ORDERS.items()
}
COUNTS = """
SELECT
    (SELECT count(*) FROM (
        SELECT FROM turno.dead_letters WHERE resolved_at IS NULL ORDER BY id LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.dead_letters WHERE resolved_at IS NOT NULL AND resolved_how = 'requeued'
        ORDER BY resolved_at DESC, id DESC LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.dead_letters WHERE resolved_at IS NOT NULL AND resolved_how = 'discarded'
        ORDER BY resolved_at DESC, id DESC LIMIT %(most)s) AS x)
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """Dead letters alike. Type, error, stack, job and letter are those of the newest one; ages in seconds.

    `hourly`: how many came in each of the last 24 hours, the oldest hour first. `queues`: those of the newest 1,000.
    """

    fingerprint: str
    count: int
    type: str
    failure_kind: str
    error_type: str | None
    error_message: str | None
    stack: str | None
    letter_id: UUID
    job_id: UUID
    first_at: datetime
    last_at: datetime
    first_ago: float
    last_ago: float
    hourly: list[int]
    queues: list[str]

    @property
    def pattern(self) -> str:
        """The message with what varies from letter to letter replaced by its kind: <n>, <id>, <text>, <address>."""
        return normalised(self.error_message or "")


@dataclass(frozen=True, slots=True)
class CausePage:
    """Some causes, and how many there are of them and of their letters; `partial`: at least so many."""

    items: list[Cause]
    causes: int
    letters: int
    partial: bool
    more: bool


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """Letters by tab; `estimated` names the tabs with more than 10,000, whose number comes from statistics."""

    pending: int
    requeued: int
    discarded: int
    estimated: frozenset[str]


def causes(
    wanted: LetterFilter | None = None, *, tab: str = "pending", sort: str = "count", offset: int = 0, size: int = 50
) -> CausePage:
    """The causes of the letters in a tab (TABS) that a filter keeps, most letters or newest letter first (ORDERS).

    A cause has the number of its letters that the filter keeps. Raises KeyError for an unknown tab or order.
    """
    params = (wanted or LetterFilter()).params() | {
        "most": MOST_LETTERS + 1,
        "causes": MOST_CAUSES,
        "size": size + 1,
        "offset": max(offset, 0),
    }
    with connections["default"].cursor() as cursor:
        cursor.execute(CAUSES[tab, sort], params)
        rows = cursor.fetchall()
    total, letters, partial = rows[0][:3]
    items = [_cause(row[3:]) for row in rows if row[3] is not None]
    return CausePage(items[:size], total, int(letters), partial, len(items) > size)


def _cause(row: tuple[Any, ...]) -> Cause:
    fingerprint, count, first_at, last_at, first_ago, last_ago, letter, job, *rest = row
    type_name, failure_kind, error_type, message, stack, counts, queues = rest
    by_hour = orjson.loads(counts) if counts else {}
    hourly = [by_hour.get(str(hour), 0) for hour in range(HOURS - 1, -1, -1)]
    return Cause(
        fingerprint, count, type_name, failure_kind, error_type, message, stack, letter, job, first_at, last_at,
        first_ago, last_ago, hourly, sorted(queues or ()),
    )  # fmt: skip


def letter_counts() -> LetterCounts:
    """How many letters each tab has: counted up to 10,000, estimated beyond."""
    with connections["default"].cursor() as cursor:
        cursor.execute(COUNTS, {"most": COUNTED + 1})
        pending, requeued, discarded = cursor.fetchone()
    counted = {"pending": pending, "requeued": requeued, "discarded": discarded}
    estimated = frozenset(tab for tab, letters in counted.items() if letters > COUNTED)
    if "pending" in estimated:
        counted["pending"] = max(pending, index_entries("dead_letters_pending"))
    large = sorted(estimated - {"pending"})
    if large:
        exact = sum(counted[tab] for tab in ("requeued", "discarded") if tab not in large)
        rest = index_entries("dead_letters_resolved") - exact
        for tab in large:
            counted[tab] = max(counted[tab], rest // len(large))
    return LetterCounts(**counted, estimated=estimated)
