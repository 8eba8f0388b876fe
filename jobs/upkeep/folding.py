"""Metrics become coarser with age: after two hours over workers, after two days by the hour.

Nobody's figures change: what tells workers apart looks back an hour, what shows minutes a day. One statement takes a
batch of rows away and adds them to what is there, so it may be broken off anywhere, and run by any number at once.

Rows that end an execution are of the minute that passes just now; none of them is touched here. Of rows that are folded
nobody waits for one; the rows that they are added to are locked in one order, and no other fold takes these away: what
is folded over workers is at least an hour younger than what is folded by the hour.
"""

from jobs import quick
from jobs.metrics import BUCKETS

WORKERS_AFTER = 2 * 3600.0
HOURS_AFTER = 48 * 3600.0
COUNTS = ("succeeded", "failed", "retried", "cancelled", "lost")
# Hours of UTC, whatever the session's zone is: some zones are half an hour off.
HOUR = "date_trunc('hour', minute, 'UTC')"
UNFOLDED = "extract(minute FROM minute AT TIME ZONE 'UTC') <> 0"  # by the hour; as the index has it
OLD = "date_trunc('hour', now() - %(after)s::float8 * interval '1 second', 'UTC')"
MOST = 2**31 - 1  # of a count: one row must not keep all others from being folded
SUMS = ", ".join(f"LEAST(sum({name}), {MOST})::int" for name in COUNTS)
BUCKET_SUMS = ", ".join(f"LEAST(COALESCE(sum(durations[{n}]), 0), {MOST})::int" for n in range(1, len(BUCKETS) + 2))
ADDED = ", ".join(f"{name} = LEAST(m.{name}::bigint + EXCLUDED.{name}, {MOST})::int" for name in COUNTS)


def _fold(place: str) -> str:
    """Take away the rows `chosen`, a CTE before this, and add them up at `place`, without their workers."""
    return f"""
, taken AS (
    DELETE FROM turno.metrics_minute WHERE id = ANY (ARRAY(SELECT id FROM chosen)) RETURNING *
), folded AS (
    INSERT INTO turno.metrics_minute AS m
        (minute, worker_id, queue, type, {", ".join(COUNTS)}, duration_sum, wait_sum, durations)
    SELECT {place}, NULL, queue, type, {SUMS}, sum(duration_sum), sum(wait_sum), ARRAY[{BUCKET_SUMS}]
    FROM taken GROUP BY 1, 3, 4 ORDER BY 1, 3, 4
    ON CONFLICT (minute, worker_id, queue, type) DO UPDATE
    SET {ADDED}, duration_sum = m.duration_sum + EXCLUDED.duration_sum, wait_sum = m.wait_sum + EXCLUDED.wait_sum,
        durations = (
        SELECT array_agg(LEAST(COALESCE(a.n, 0)::bigint + COALESCE(b.n, 0), {MOST})::int ORDER BY place)
        FROM unnest(m.durations) WITH ORDINALITY AS a(n, place)
        FULL JOIN unnest(EXCLUDED.durations) WITH ORDINALITY AS b(n, place) USING (place)
    )
)
SELECT count(*) FROM taken
"""


FOLD_WORKERS = f"""
WITH chosen AS MATERIALIZED (
    SELECT id FROM turno.metrics_minute
    WHERE worker_id IS NOT NULL AND minute < now() - %(from)s::float8 * interval '1 second'
      AND minute >= {OLD} + interval '1 hour'
    ORDER BY minute LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) {_fold("minute")}
"""
# Two looks, each by an index of its own that has no other rows.
FOLD_HOURS = f"""
WITH chosen AS MATERIALIZED (
    SELECT id FROM (
        SELECT id FROM turno.metrics_minute
        WHERE {UNFOLDED} AND minute < {OLD} ORDER BY minute LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS minutes
    UNION
    SELECT id FROM (
        SELECT id FROM turno.metrics_minute
        WHERE worker_id IS NOT NULL AND minute < {OLD} ORDER BY minute LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS workers
) {_fold(HOUR)}
"""


def fold_workers(
    *, after: float = WORKERS_AFTER, hours_after: float = HOURS_AFTER, limit: int, using: str = "default"
) -> int:
    """Add up at most `limit` rows of workers that are older than `after` seconds, minute by minute; returns how many.

    Those that `fold_hours` takes, or soon will, are left to it.
    """
    return _folded(FOLD_WORKERS, {"from": float(after), "after": float(hours_after), "limit": limit}, using)


def fold_hours(*, after: float = HOURS_AFTER, limit: int, using: str = "default") -> int:
    """Add up at most twice `limit` rows of hours that ended more than `after` seconds ago; returns how many."""
    return _folded(FOLD_HOURS, {"after": float(after), "limit": limit}, using)


def _folded(statement: str, params: dict[str, float], using: str) -> int:
    with quick.batch(using) as cursor:
        cursor.execute(statement, params)
        return int(cursor.fetchone()[0])
