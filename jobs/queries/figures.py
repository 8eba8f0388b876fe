"""The figures of now and of the last 24 hours. Waiting and running jobs by partial indexes, the past by the minute."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connections

from jobs.queries.durations import usual_duration
from jobs.queries.estimates import COUNTED, index_entries
from jobs.queuewalk import ALL, NAMES
from jobs.queuewalk import OLDEST as OLDEST_OF_QUEUE
from jobs.states import State

CAUSES_COUNTED = 1000
# In the order of the partial index that holds just these rows. Without an order the planner may prefer the table,
# expecting to meet enough of them soon; but what waits is what came last, at its very end.
NOW = """
SELECT
    (SELECT count(*) FROM (
        SELECT FROM turno.jobs WHERE state = 'Enqueued' ORDER BY queue LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NOT NULL ORDER BY run_at LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NULL ORDER BY waiting_for LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.jobs WHERE state = 'Processing' ORDER BY lease_expires_at LIMIT %(most)s) AS x),
    (SELECT count(*) FROM (
        SELECT FROM turno.dead_letters WHERE resolved_at IS NULL ORDER BY id LIMIT %(most)s) AS x),
    (SELECT min(run_at) FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NOT NULL),
    now()
"""
OLDEST = f"""
WITH RECURSIVE {NAMES}
SELECT min(oldest.at) FROM names AS n CROSS JOIN LATERAL ({OLDEST_OF_QUEUE}) AS oldest
"""
# Causes are walked by the index of the pending letters: one step a cause, however many letters it has.
CAUSES = """
WITH RECURSIVE causes AS (
    (SELECT fingerprint, 1 AS place FROM turno.dead_letters
     WHERE resolved_at IS NULL ORDER BY fingerprint LIMIT 1)
    UNION ALL
    SELECT next.fingerprint, c.place + 1 FROM causes AS c CROSS JOIN LATERAL (
        SELECT fingerprint FROM turno.dead_letters
        WHERE resolved_at IS NULL AND fingerprint > c.fingerprint ORDER BY fingerprint LIMIT 1
    ) AS next
    WHERE c.place < %(most)s
)
SELECT count(*) FROM causes
"""
TOTALS = """
    COALESCE(sum(succeeded), 0), COALESCE(sum(failed), 0), COALESCE(sum(retried), 0), COALESCE(sum(cancelled), 0),
    COALESCE(sum(lost), 0), COALESCE(sum(duration_sum), 0), COALESCE(sum(wait_sum), 0)
"""
HOUR = f"SELECT {TOTALS} FROM turno.metrics_minute WHERE minute >= now() - interval '1 hour'"
DAY = f"SELECT {TOTALS} FROM turno.metrics_minute WHERE minute >= now() - interval '24 hours'"


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
class Past:
    """What ended in the last hour and in the last 24; `p95_duration` in seconds, an estimate (`usual_duration`).

    `p95_duration` is None below 20 executions; with `p95_beyond` it is somewhere above the value (30 min).
    """

    last_hour: Ended
    last_24_hours: Ended
    p95_duration: float | None
    p95_beyond: bool


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of one instant (`as_of`, the database's). `estimated` names those that come from statistics.

    `parked` jobs are the part of the Scheduled ones that wait for a gate and not for an instant. `causes` are those of
    the pending dead letters, at most 1,000 of them: beyond that `estimated` names it. `oldest_for` and `next_in` in
    seconds: how long the oldest waiting job waits, and when the next instant comes (0: it has come).
    """

    scheduled: int
    parked: int
    enqueued: int
    processing: int
    dead_letters: int
    causes: int
    estimated: list[str]
    oldest_enqueued_at: datetime | None
    oldest_for: float | None
    next_run_at: datetime | None
    next_in: float | None
    last_hour: Ended
    last_24_hours: Ended
    p95_duration: float | None
    p95_beyond: bool
    as_of: datetime

    @property
    def active(self) -> dict[State, int]:
        """Jobs that have not ended, by state."""
        return {
            State.SCHEDULED: self.scheduled,
            State.ENQUEUED: self.enqueued,
            State.PROCESSING: self.processing,
        }

    @property
    def timed(self) -> int:
        """The Scheduled jobs that wait for an instant."""
        return self.scheduled - self.parked

    @property
    def waiting(self) -> int:
        """Jobs that wait for a worker or at a gate: what the screens call "in the queue"."""
        return self.enqueued + self.parked


def _ended(row: Sequence[float]) -> Ended:
    succeeded, failed, retried, cancelled, lost = (int(value) for value in row[:5])
    executions = succeeded + failed + retried + cancelled  # a lost one is also one of these
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


def past() -> Past:
    """What has ended, read from the minutes' rows of a whole day: ask for it seldom, a screen every 15 s or so."""
    with connections["default"].cursor() as cursor:
        cursor.execute(HOUR)
        hour = cursor.fetchone()
        cursor.execute(DAY)
        day = cursor.fetchone()
    p95 = usual_duration()
    return Past(_ended(hour), _ended(day), p95.seconds if p95 else None, bool(p95 and p95.beyond))


def stats(ended: Past | None = None) -> Stats:
    """The figures, in a handful of bounded statements; `ended` is `past()` where the caller has it already."""
    ended = past() if ended is None else ended
    with connections["default"].cursor() as cursor:
        cursor.execute(NOW, {"most": COUNTED + 1})
        enqueued, timed, parked, processing, letters, next_run_at, as_of = cursor.fetchone()
        cursor.execute(OLDEST, {"queues": ALL})
        (oldest,) = cursor.fetchone()
        cursor.execute(CAUSES, {"most": CAUSES_COUNTED + 1})
        (causes,) = cursor.fetchone()
    estimated = []

    def count(name: str, counted: int, index: str) -> int:
        if counted <= COUNTED:
            return counted
        estimated.append(name)
        return max(counted, index_entries(index))

    enqueued = count("enqueued", enqueued, "jobs_claim_order")
    timed = count("scheduled", timed, "jobs_due_order")
    parked = count("parked", parked, "jobs_parked_order")
    processing = count("processing", processing, "jobs_lease_order")
    letters = count("dead_letters", letters, "dead_letters_by_cause")
    if causes > CAUSES_COUNTED:
        estimated.append("causes")
    return Stats(
        scheduled=timed + parked,
        parked=parked,
        enqueued=enqueued,
        processing=processing,
        dead_letters=letters,
        causes=causes,
        estimated=estimated,
        oldest_enqueued_at=oldest,
        oldest_for=_seconds(oldest, as_of),
        next_run_at=next_run_at,
        next_in=_seconds(as_of, next_run_at),
        last_hour=ended.last_hour,
        last_24_hours=ended.last_24_hours,
        p95_duration=ended.p95_duration,
        p95_beyond=ended.p95_beyond,
        as_of=as_of,
    )


def _seconds(first: datetime | None, second: datetime | None) -> float | None:
    """From one instant to the other, both of the database; not below 0, and None where one is missing."""
    return None if first is None or second is None else max(0.0, (second - first).total_seconds())
