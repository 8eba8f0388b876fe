"""The figures of now and of the last 24 hours. Waiting and running jobs by partial indexes, the past by the minute."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connections

from jobs.states import State

# Above this a count comes from the statistics of the index, and says so.
COUNTED = 10_000
NOW = """
SELECT
    (SELECT count(*) FROM (SELECT FROM turno.jobs WHERE state = 'Enqueued' LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NOT NULL LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (SELECT FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NULL LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (SELECT FROM turno.jobs WHERE state = 'Processing' LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (SELECT FROM turno.dead_letters WHERE resolved_at IS NULL LIMIT %(most)s) AS x),
    (SELECT min(run_at) FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NOT NULL),
    now()
"""
# The oldest of each queue is the head of its part of the claim index, so queues are walked and not counted.
OLDEST = """
WITH RECURSIVE names AS (
    (SELECT queue FROM turno.jobs WHERE state = 'Enqueued' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM turno.jobs WHERE state = 'Enqueued' AND queue > n.queue ORDER BY queue LIMIT 1)
    FROM names AS n WHERE n.queue IS NOT NULL
), levels AS (
    SELECT n.queue, p.priority FROM names AS n CROSS JOIN generate_series(-10, 10) AS p(priority)
    WHERE n.queue IS NOT NULL
)
SELECT min(first.enqueued_at) FROM levels AS l CROSS JOIN LATERAL (
    SELECT enqueued_at FROM turno.jobs AS j
    WHERE j.state = 'Enqueued' AND j.queue = l.queue AND j.priority = l.priority
    ORDER BY j.enqueued_at LIMIT 1
) AS first
"""
ESTIMATE = "SELECT GREATEST(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(%(index)s)"
PAST = """
SELECT
    COALESCE(sum(succeeded), 0), COALESCE(sum(failed), 0), COALESCE(sum(retried), 0), COALESCE(sum(cancelled), 0),
    COALESCE(sum(lost), 0), COALESCE(sum(duration_sum), 0), COALESCE(sum(wait_sum), 0)
FROM turno.metrics_minute WHERE minute >= now() - make_interval(mins => %(minutes)s)
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """What ended in a span of time; means in seconds over the executions, None without any."""

    succeeded: int
    failed: int
    retried: int
    cancelled: int
    lost: int
    mean_duration: float | None
    mean_wait: float | None


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of one instant (`as_of`, the database's). `estimated` names those that come from statistics.

    `parked` jobs are the part of the Scheduled ones that wait for a gate and not for an instant.
    """

    scheduled: int
    parked: int
    enqueued: int
    processing: int
    dead_letters: int
    estimated: list[str]
    oldest_enqueued_at: datetime | None
    next_run_at: datetime | None
    last_hour: Ended
    last_24_hours: Ended
    as_of: datetime

    @property
    def active(self) -> dict[State, int]:
        """Jobs that have not ended, by state."""
        return {
            State.SCHEDULED: self.scheduled,
            State.ENQUEUED: self.enqueued,
            State.PROCESSING: self.processing,
        }


def _ended(row: tuple[float, ...]) -> Ended:
    succeeded, failed, retried, cancelled, lost = (int(value) for value in row[:5])
    executions = succeeded + failed + retried + cancelled + lost
    durations, waits = float(row[5]), float(row[6])
    return Ended(
        succeeded,
        failed,
        retried,
        cancelled,
        lost,
        durations / executions if executions else None,
        waits / executions if executions else None,
    )


def stats() -> Stats:
    """The figures, in a handful of bounded statements."""
    with connections["default"].cursor() as cursor:

        def one(sql: str, **params: object) -> tuple[float, ...]:
            cursor.execute(sql, params)
            return tuple(cursor.fetchone())

        cursor.execute(NOW, {"most": COUNTED + 1})
        enqueued, timed, parked, processing, letters, next_run_at, as_of = cursor.fetchone()
        cursor.execute(OLDEST)
        (oldest,) = cursor.fetchone()
        estimated = []

        def count(name: str, counted: int, index: str) -> int:
            if counted <= COUNTED:
                return counted
            estimated.append(name)
            return max(counted, int(one(ESTIMATE, index=f"turno.{index}")[0]))

        enqueued = count("enqueued", enqueued, "jobs_claim_order")
        timed = count("scheduled", timed, "jobs_due_order")
        parked = count("parked", parked, "jobs_parked_order")
        processing = count("processing", processing, "jobs_lease_order")
        letters = count("dead_letters", letters, "dead_letters_by_cause")
        hour, day = _ended(one(PAST, minutes=60)), _ended(one(PAST, minutes=24 * 60))
    return Stats(
        scheduled=timed + parked,
        parked=parked,
        enqueued=enqueued,
        processing=processing,
        dead_letters=letters,
        estimated=estimated,
        oldest_enqueued_at=oldest,
        next_run_at=next_run_at,
        last_hour=hour,
        last_24_hours=day,
        as_of=as_of,
    )
