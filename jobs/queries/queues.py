"""The queues as their screen and the API show them: depth and room, settings, and what ended in the last hour."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from django.db import connections

from jobs.queries.board import Board
from jobs.queries.depths import Depth, depths
from jobs.queuewalk import MANY

MINUTES = 60
RECENT = 15  # minutes of which the throughput is the mean
SETTINGS = "SELECT name, slots, default_priority FROM turno.queues ORDER BY name LIMIT %(queues)s"
# `age`: whole minutes since that minute, 0 for the one that is not over yet.
ENDED = """
SELECT queue, (extract(epoch FROM date_trunc('minute', now()) - minute) / 60)::int AS age,
    sum(succeeded + failed + retried + cancelled)::int, sum(failed)::int
FROM turno.metrics_minute
WHERE minute > date_trunc('minute', now()) - make_interval(mins => %(minutes)s) GROUP BY queue, minute
"""


@dataclass(frozen=True, slots=True)
class QueueRow(Depth):
    """A queue with its settings and its last hour.

    `slots`: those that somebody has set for each worker (None: each worker's own number); `default_priority`: that of
    jobs that neither their request nor their type gives one (None: 0). `ended_last_hour` counts executions that ended,
    `failed_last_hour` those of them that ended their job Failed; `per_minute` is how many ended a minute in the last 15
    full ones. `history`, where it was asked for: how many ended in each of the last 60 minutes, oldest first, the last
    not over.
    """

    slots: int | None
    default_priority: int | None
    ended_last_hour: int
    failed_last_hour: int
    per_minute: float
    history: tuple[int, ...]

    @property
    def served(self) -> bool:
        """A live worker takes from it."""
        return self.workers > 0


@dataclass(slots=True)
class _Hour:
    """What ended in a queue, by the age of the minute."""

    ended: list[int]
    failed: int = 0

    @property
    def per_minute(self) -> float:
        return sum(self.ended[1 : RECENT + 1]) / RECENT


def queues(seen: Board | None = None, *, history: bool = False) -> list[QueueRow]:
    """The queues that have jobs, workers, a pause or settings, by name; at most some 500.

    `seen` is `board()` where the caller has it already. `history`: with the minutes of the last hour.
    """
    found = depths(seen)
    with connections["default"].cursor() as cursor:
        cursor.execute(SETTINGS, {"queues": MANY})
        settings = {name: (slots, priority) for name, slots, priority in cursor.fetchall()}
        cursor.execute(ENDED, {"minutes": MINUTES})
        hours: dict[str, _Hour] = {}
        for queue, age, ended, failed in cursor.fetchall():
            hour = hours.setdefault(queue, _Hour([0] * MINUTES))
            if 0 <= age < MINUTES:
                hour.ended[age] = ended
                hour.failed += failed
    nothing = _Hour([0] * MINUTES)
    return list(_rows(found, settings, hours, nothing, history))


def _rows(
    found: list[Depth],
    settings: dict[str, tuple[int | None, int | None]],
    hours: dict[str, _Hour],
    nothing: _Hour,
    history: bool,
) -> Iterator[QueueRow]:
    for depth in found:
        slots, priority = settings.get(depth.queue, (None, None))
        hour = hours.get(depth.queue, nothing)
        yield QueueRow(
            **{field.name: getattr(depth, field.name) for field in fields(Depth)},
            slots=slots,
            default_priority=priority,
            ended_last_hour=sum(hour.ended),
            failed_last_hour=hour.failed,
            per_minute=hour.per_minute,
            history=tuple(reversed(hour.ended)) if history else (),
        )
