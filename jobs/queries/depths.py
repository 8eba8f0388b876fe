"""The queues: how deep, how old, how much room, who serves them, whether they are paused."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connections

from jobs.queries.board import Board, board
from jobs.queries.estimates import COUNTED, index_entries
from jobs.queries.pauses import PauseRow
from jobs.queries.seats import QueueUse
from jobs.queuewalk import MANY, NAMES, OLDEST

# Each is counted up to a bound.
WAITING = f"""
WITH RECURSIVE {NAMES}
SELECT n.queue, counted.jobs, extract(epoch FROM now() - oldest.at)::float8
FROM names AS n
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        SELECT FROM turno.jobs WHERE state = 'Enqueued' AND queue = n.queue ORDER BY priority DESC LIMIT %(most)s
    ) AS x
) AS counted
CROSS JOIN LATERAL ({OLDEST}) AS oldest
"""
PARKED = """
SELECT queue, count(*) FROM (
    SELECT queue FROM turno.jobs WHERE state = 'Scheduled' AND run_at IS NULL ORDER BY waiting_for LIMIT %(most)s
) AS x GROUP BY queue
"""
NAMED = "SELECT name FROM turno.queues ORDER BY name LIMIT %(queues)s"
# How often each queue occurs among all jobs, as the last ANALYZE saw it.
SHARES = """
SELECT queue, share FROM pg_stats,
    unnest(most_common_vals::text::text[], most_common_freqs) AS common(queue, share)
WHERE schemaname = 'turno' AND tablename = 'jobs' AND attname = 'queue' AND queue = ANY(%(queues)s::text[])
"""


@dataclass(frozen=True, slots=True)
class Depth:
    """A queue. `waiting` jobs are Enqueued; `oldest_for` is the age of the oldest of them in seconds, None without any.

    `parked` jobs wait at a gate. `estimated`: `waiting` comes from statistics; `parked_at_least`: there are more than
    were counted. `busy`, `capacity`, `free` and `workers` as in `QueueUse`. `paused`: the pause in force, or None.
    """

    queue: str
    waiting: int
    estimated: bool
    oldest_for: float | None
    parked: int
    parked_at_least: bool
    busy: int
    capacity: int
    free: int
    workers: int
    paused: PauseRow | None

    @property
    def unserved(self) -> bool:
        """Jobs wait, and no live worker serves the queue."""
        return self.workers == 0 and self.waiting > 0


def depths(seen: Board | None = None) -> list[Depth]:
    """The queues that have jobs, workers, a pause or settings, by name; at most some 500.

    `seen` is `board()` where the caller has it already. A queue with more than 10,000 waiting jobs is estimated.
    """
    seen = board() if seen is None else seen
    with connections["default"].cursor() as cursor:
        cursor.execute(WAITING, {"most": COUNTED + 1, "queues": MANY})
        waiting = {queue: (jobs, oldest) for queue, jobs, oldest in cursor.fetchall()}
        cursor.execute(PARKED, {"most": COUNTED + 1})
        parked = dict(cursor.fetchall())
        cursor.execute(NAMED, {"queues": MANY})
        named = {name for (name,) in cursor.fetchall()}
    estimates = _estimates({queue: jobs for queue, (jobs, _) in waiting.items()})
    more_parked = sum(parked.values()) > COUNTED
    use = seen.use()
    paused = {pause.value: pause for pause in seen.pauses if pause.scope == "queue"}
    nothing, empty = (0, None), QueueUse(0, 0, 0, 0)
    found = []
    for queue in sorted({*waiting, *parked, *named, *use, *paused}):
        jobs, oldest = waiting.get(queue, nothing)
        slots = use.get(queue, empty)
        found.append(
            Depth(
                queue, estimates.get(queue, jobs), queue in estimates,
                None if oldest is None else max(0.0, oldest), parked.get(queue, 0), more_parked,
                slots.busy, slots.capacity, slots.free, slots.workers, paused.get(queue),
            )
        )  # fmt: skip
    return found


def _estimates(counted: Mapping[str, int]) -> dict[str, int]:
    """For the queues beyond the bound: what the claim index holds besides the counted ones, shared out between them."""
    large = sorted(queue for queue, jobs in counted.items() if jobs > COUNTED)
    if not large:
        return {}
    rest = index_entries("jobs_claim_order") - sum(jobs for queue, jobs in counted.items() if queue not in large)
    shares = dict.fromkeys(large, 0.0)
    with connections["default"].cursor() as cursor:
        cursor.execute(SHARES, {"queues": large})
        shares.update(cursor.fetchall())
    whole = sum(shares.values())
    if not all(shares.values()):
        shares, whole = dict.fromkeys(large, 1.0), float(len(large))
    return {queue: max(counted[queue], round(rest * share / whole)) for queue, share in shares.items()}
