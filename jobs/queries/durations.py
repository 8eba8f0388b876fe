"""How long jobs of each type usually take: the 95th percentile of the last 24 hours, from the minutes' histograms."""

from django.db import connections

from jobs.queries.histogram import SUMS, Percentile, percentile

# Newest first and bounded: in a large house the last hours stand for the day.
ROWS = 20_000
DURATIONS = f"""
SELECT type, {SUMS}
FROM (
    SELECT type, durations FROM turno.metrics_minute
    WHERE minute >= now() - interval '24 hours' ORDER BY minute DESC LIMIT %(rows)s
) AS newest
GROUP BY type
"""


def durations() -> dict[str, float]:
    """The 95th percentile of the durations by type, in seconds: an estimate from the newest executions of 24 hours.

    A type is missing below 20 executions, and where the percentile is beyond what the histogram can tell (30 min).
    """
    found = {name: percentile(counts) for name, counts in _histograms().items()}
    return {name: p95.seconds for name, p95 in found.items() if p95 is not None and not p95.beyond}


def usual_duration() -> Percentile | None:
    """The 95th percentile of the durations of all types together, as `durations`; None below 20 executions."""
    columns = zip(*_histograms().values(), strict=True)
    return percentile([sum(column) for column in columns])


def _histograms() -> dict[str, list[float]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(DURATIONS, {"rows": ROWS})
        return {name: counts for name, *counts in cursor.fetchall()}
