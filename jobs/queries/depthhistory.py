"""How deep each queue was at each minute of the last hour, as far as what is stored tells it.

Nobody writes down a queue's depth. Who waits now and who runs tell when they came and left; of what has ended each
minute keeps how many there were, how long they waited and ran: on the mean of these they were in the queue. An
estimate, good enough for the line beside the number, which is counted.
"""

from collections.abc import Iterator, Mapping

from django.db import connections

from jobs.queries.estimates import COUNTED
from jobs.queuewalk import MANY, NAMES

MINUTES = 60
RUNNING = 20_000
# Each as (queue, how many, minutes since they came, minutes since they left or NULL).
WAITING = f"""
WITH RECURSIVE {NAMES}
SELECT n.queue, h.jobs, h.came, NULL::float8
FROM names AS n CROSS JOIN LATERAL (
    SELECT count(*)::float8 AS jobs,
        LEAST({MINUTES + 1}, floor(extract(epoch FROM now() - enqueued_at) / 60))::float8 AS came
    FROM (
        SELECT enqueued_at FROM turno.jobs WHERE state = 'Enqueued' AND queue = n.queue
        ORDER BY priority DESC LIMIT %(most)s
    ) AS x
    GROUP BY 2
) AS h
"""
PARKED = f"""
SELECT queue, count(*)::float8, came, NULL::float8 FROM (
    SELECT queue, LEAST(
        {MINUTES + 1}, floor(extract(epoch FROM now() - COALESCE(enqueued_at, created_at)) / 60)
    )::float8 AS came
    FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NULL ORDER BY waiting_for LIMIT %(most)s
) AS x GROUP BY queue, came
"""
STARTED = """
SELECT queue, count(*)::float8, came, started FROM (
    SELECT queue, floor(extract(epoch FROM now() - enqueued_at) / 60)::float8 AS came,
        floor(extract(epoch FROM now() - claimed_at) / 60)::float8 AS started
    FROM turno.jobs WHERE state = 'Processing' LIMIT %(running)s
) AS x GROUP BY queue, came, started
"""
ENDED = """
SELECT queue, jobs, gone + (waited + ran) / jobs / 60, gone + ran / jobs / 60 FROM (
    SELECT queue, GREATEST(0, extract(epoch FROM now() - minute) / 60 - 0.5)::float8 AS gone,
        sum(succeeded + failed + retried + cancelled + lost)::float8 AS jobs, sum(wait_sum) AS waited,
        sum(duration_sum) AS ran
    FROM turno.metrics_minute
    WHERE minute > date_trunc('minute', now()) - make_interval(mins => %(minutes)s) GROUP BY queue, minute
) AS m WHERE jobs > 0
"""


def depth_history(now: Mapping[str, int]) -> dict[str, list[float]]:
    """Of each queue how many waited in it, parked ones too, at each of the last 60 minutes, oldest first; the last
    number is that of `now` (counted elsewhere)."""
    found = {queue: [0.0] * MINUTES for queue in now}
    for queue, jobs, came, left in _moves():
        line = found.setdefault(queue, [0.0] * MINUTES)
        # It counts at the instants m minutes ago that lie between the two.
        oldest = min(MINUTES - 1, int(came))
        newest = 0 if left is None else max(1, int(left) + 1)
        for age in range(newest, oldest + 1):
            line[MINUTES - 1 - age] += jobs
    for queue, waiting in now.items():
        _fit(found[queue], waiting)
    return found


def _fit(line: list[float], waiting: int) -> None:
    """Deep queues are read up to a bound: what was read stands for the whole."""
    read = line[-1]
    if read > COUNTED and waiting > read:
        line[:] = [value * waiting / read for value in line]
    line[-1] = float(waiting)


def _moves() -> Iterator[tuple[str, float, float, float | None]]:
    with connections["default"].cursor() as cursor:
        for sql in (WAITING, PARKED, STARTED, ENDED):
            cursor.execute(sql, {"most": COUNTED + 1, "queues": MANY, "running": RUNNING, "minutes": MINUTES})
            yield from cursor.fetchall()
