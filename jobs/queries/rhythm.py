"""What ended in each of the last minutes: the chart's bars."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connections

MOST = 24 * 60
RHYTHM = """
WITH ended AS (
    SELECT minute, sum(succeeded) AS succeeded, sum(failed) AS failed, sum(retried) AS retried
    FROM turno.metrics_minute
    WHERE minute > date_trunc('minute', now()) - make_interval(mins => %(minutes)s) GROUP BY minute
)
SELECT m.minute, COALESCE(e.succeeded, 0), COALESCE(e.failed, 0), COALESCE(e.retried, 0)
FROM generate_series(
    date_trunc('minute', now()) - make_interval(mins => %(minutes)s - 1), date_trunc('minute', now()), '1 minute'
) AS m(minute)
LEFT JOIN ended AS e USING (minute)
ORDER BY m.minute
"""


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute by its first instant; `failed` jobs ended Failed, `retried` executions failed and will run again."""

    minute: datetime
    succeeded: int
    failed: int
    retried: int


def rhythm(minutes: int = 60) -> list[Minute]:
    """The last `minutes` (1 to 1440) minutes, oldest first, none left out; the last one is not over yet."""
    with connections["default"].cursor() as cursor:
        cursor.execute(RHYTHM, {"minutes": min(max(minutes, 1), MOST)})
        return [Minute(at, int(ok), int(bad), int(again)) for at, ok, bad, again in cursor.fetchall()]
