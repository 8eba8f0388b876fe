"""What the leader's looks at the promises have found: the last one, two days by the hour, and the last storm."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from jobs.models import StormReport

HOURS = 48
LAST = """
SELECT at, GREATEST(0, extract(epoch FROM now() - at))::float8, seconds, attended, found, unanswered, (
    SELECT extract(epoch FROM now() - min(c.at))::float8 FROM turno.promise_checks AS c
    WHERE c.at > COALESCE((SELECT max(b.at) FROM turno.promise_checks AS b WHERE b.found <> '[]'), '-infinity')
)
FROM turno.promise_checks ORDER BY id DESC LIMIT 1
"""
# By the hour before now, the oldest first; an hour without a look has none.
BY_HOUR = """
SELECT h.ago, count(c.id), count(c.id) FILTER (WHERE c.found <> '[]')
FROM generate_series(%(hours)s::int - 1, 0, -1) AS h(ago)
LEFT JOIN turno.promise_checks AS c ON c.at > now() - (h.ago + 1) * interval '1 hour'
    AND c.at <= now() - h.ago * interval '1 hour'
GROUP BY h.ago ORDER BY h.ago DESC
"""


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that a look has found broken: `count` of what breaks it (`more`: that many at least), some ids of
    it, and the instant `since` which each look has found it."""

    name: str
    count: int
    more: bool
    examples: tuple[str, ...]
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Look:
    """The last look: `age` in seconds, how many `seconds` it took, whether somebody led (`attended`), what was broken,
    and the names of what was not answered in time. `kept_for`: seconds since the first look that has found nothing
    with none after it that has; None while something is broken. Looks are kept for two days."""

    at: datetime
    age: float
    seconds: float
    attended: bool
    broken: tuple[Broken, ...]
    unanswered: tuple[str, ...]
    kept_for: float | None


@dataclass(frozen=True, slots=True)
class Hour:
    """The looks of an hour, which ended `ago` hours ago, and how many of them found something."""

    ago: int
    looks: int
    bad: int


@dataclass(frozen=True, slots=True)
class Storm:
    """The report of the last storm: `faults` by kind, and what was broken afterwards."""

    at: datetime
    place: str
    seed: int
    seconds: float
    jobs: int
    faults: Mapping[str, int]
    broken: tuple[Broken, ...]


@dataclass(frozen=True, slots=True)
class Promises:
    """What is known of the promises. `last` None: nobody has looked as yet, or not for two days."""

    last: Look | None
    hours: Sequence[Hour]
    storm: Storm | None


def promises() -> Promises:
    """What is known of the promises now."""
    with connections["default"].cursor() as cursor:
        cursor.execute(LAST)
        row = cursor.fetchone()
        cursor.execute(BY_HOUR, {"hours": HOURS})
        hours = [Hour(*hour) for hour in cursor.fetchall()]
    return Promises(_look(row), hours, _storm())


def broken_invariants() -> tuple[float, Sequence[str]] | None:
    """The age of the last look in seconds, and the names of what it has found broken; None without one."""
    with connections["default"].cursor() as cursor:
        cursor.execute(LAST)
        last = _look(cursor.fetchone())
    return None if last is None else (last.age, [broken.name for broken in last.broken])


def _look(row: Sequence[Any] | None) -> Look | None:
    if row is None:
        return None
    at, age, seconds, attended, found, unanswered, kept_for = row
    return Look(at, age, seconds, attended, _broken(_plain(found)), tuple(_plain(unanswered)), kept_for)


def _storm() -> Storm | None:
    report = StormReport.objects.first()
    if report is None:
        return None
    return Storm(
        report.at, report.place, report.seed, report.seconds, report.jobs, report.faults, _broken(report.found)
    )


def _plain(stored: Any) -> Any:
    return json.loads(stored) if isinstance(stored, str) else stored


def _broken(found: Sequence[Mapping[str, Any]]) -> tuple[Broken, ...]:
    return tuple(
        Broken(
            one["name"], one["count"], one["more"], tuple(one["examples"]),
            datetime.fromisoformat(one["since"]) if one.get("since") else None,
        )
        for one in found
    )  # fmt: skip
