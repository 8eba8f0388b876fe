"""The shift board: every worker that serves or still holds jobs, and what runs in its slots.

Definitions, in one place: *busy* are the jobs in the state Processing; *capacity* are the slots of online workers, and
the slots that are still busy on draining and lost ones. So nothing is ever more than full.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connections

from jobs.conf import conf
from jobs.queries.durations import durations
from jobs.queries.fleet import STATE
from jobs.queries.pauses import PauseRow, pauses
from jobs.queries.seats import MOST, QueueUse, Running, Seat, placed, seated

WORKERS_SHOWN = 500
RUNNING_SHOWN = 20_000
# The longest first. When a job returns is recovery's to say: it looks at the lease alone, some seconds after its end.
RUNNING = """
SELECT worker_id, id, type, queue, COALESCE(slot, 0), left(stage, 200), progress,
    GREATEST(0, date_part('epoch', now() - COALESCE(started_at, claimed_at))), started_at IS NOT NULL,
    GREATEST(0, date_part('epoch', lease_expires_at - now()) + %(grace)s),
    cancel_requested_at IS NOT NULL, LEAST(max_attempts, attempts_used + 1), lost_count, worker_label->>'name'
FROM turno.jobs WHERE state = 'Processing' ORDER BY COALESCE(started_at, claimed_at), id LIMIT %(limit)s
"""
# One that is gone is here for the jobs that it owned a moment ago.
WORKERS = f"""
SELECT id, name, host, pid, version, queues::text, problems::text, {STATE},
    GREATEST(0, extract(epoch FROM now() - seen_at))::float8,
    GREATEST(0, extract(epoch FROM now() - started_at))::float8
FROM (
    SELECT * FROM turno.workers
    WHERE state <> 'Offline' AND seen_at >= now() - make_interval(secs => %(lease)s)
    UNION
    SELECT * FROM turno.workers WHERE id = ANY(%(owners)s::uuid[])
) AS w
LIMIT %(limit)s
"""
NOW = "SELECT now()"
# Those that need a person come first; within that by name, so that a row keeps its place while nothing happens.
RANKS = {"Offline": 0, "Silent": 0, "Draining": 1, "Online": 2}


@dataclass(frozen=True, slots=True)
class BoardWorker:
    """A worker process: Online, Draining, Silent (no sign of life), or Offline and still the owner of jobs.

    `queues`: slots by queue as they are now; `running`: its jobs, the longest first; ages in seconds.
    `paused`: those of its queues that are paused.
    """

    id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: dict[str, int]
    problems: list[Any]
    state: str
    seen_ago: float
    started_ago: float
    running: list[Running]
    paused: frozenset[str]

    @property
    def live(self) -> bool:
        """It gave a sign of life a moment ago."""
        return self.state in {"Online", "Draining"}

    @property
    def lost(self) -> bool:
        """It gives no sign of life; its jobs return when their leases end, unless it comes back."""
        return not self.live

    @property
    def slots(self) -> int:
        """How many jobs it may run at once."""
        return sum(self.queues.values())

    @property
    def busy(self) -> int:
        """How many jobs it runs, or ran when it was last heard of."""
        return len(self.running)

    @property
    def capacity(self) -> int:
        """Its slots while it is online, only the busy ones else."""
        return sum(use.capacity for use in self.use().values())

    @property
    def returns_in(self) -> float | None:
        """Seconds until the first of its jobs may be given back; None while it lives or has none."""
        return min((job.returns_in for job in self.running if job.returns_in is not None), default=None)

    @property
    def longest(self) -> Running | None:
        """The job that runs longest."""
        return self.running[0] if self.running else None

    def accepts(self, queue: str) -> bool:
        """Whether its free slots of this queue take work now."""
        return self.state == "Online" and queue not in self.paused

    def seats(self) -> dict[str, list[Seat]]:
        """Its slots by queue, queues by name. A queue it does not serve is here for the jobs it has of it."""
        return {
            queue: seated(self.queues.get(queue, 0), jobs, accepts=self.accepts(queue))
            for queue, jobs in self._by_queue()
        }

    def use(self) -> dict[str, QueueUse]:
        """What its slots of each queue add up to; the same slots as `seats()`."""
        found = {}
        for queue, jobs in self._by_queue():
            slots, busy = self.queues.get(queue, 0), len(jobs)
            own, over = placed(slots, jobs)
            capacity = slots + len(over) if self.state == "Online" else busy
            free = slots - len(own) if self.accepts(queue) else 0
            found[queue] = QueueUse(busy, capacity, free, workers=int(self.live and slots > 0))
        return found

    def _by_queue(self) -> list[tuple[str, list[Running]]]:
        jobs: dict[str, list[Running]] = {queue: [] for queue in self.queues}
        for job in self.running:
            jobs.setdefault(job.queue, []).append(job)
        return sorted(jobs.items())


@dataclass(frozen=True, slots=True)
class Board:
    """The workers in the order of the board, at `as_of`. `strays`: running jobs whose worker's row is gone.

    `truncated`: there are more jobs or workers than are shown (20,000 and 500).
    """

    as_of: datetime
    workers: list[BoardWorker]
    strays: list[Running]
    pauses: list[PauseRow]
    truncated: bool

    @property
    def busy(self) -> int:
        """How many jobs are in the state Processing."""
        return sum(worker.busy for worker in self.workers) + len(self.strays)

    @property
    def capacity(self) -> int:
        """Slots of online workers, and busy ones of all others; never less than `busy`."""
        return sum(worker.capacity for worker in self.workers) + len(self.strays)

    @property
    def lost(self) -> list[BoardWorker]:
        """The workers that give no sign of life."""
        return [worker for worker in self.workers if worker.lost]

    def count(self, state: str) -> int:
        """How many workers are in this state."""
        return sum(1 for worker in self.workers if worker.state == state)

    def use(self) -> dict[str, QueueUse]:
        """What the slots of each queue add up to over all workers, queues by name; strays are busy."""
        found: dict[str, QueueUse] = {}
        for worker in self.workers:
            for queue, use in worker.use().items():
                found[queue] = found[queue].plus(use) if queue in found else use
        for job in self.strays:
            stray = QueueUse(busy=1, capacity=1, free=0, workers=0)
            found[job.queue] = found[job.queue].plus(stray) if job.queue in found else stray
        return dict(sorted(found.items()))


def _slots(text: str) -> dict[str, int]:
    """Slots by queue out of a worker's row, which a person may have written too."""
    found = orjson.loads(text)
    if not isinstance(found, dict):
        return {}
    return {queue: min(max(n, 0), MOST) for queue, n in sorted(found.items()) if type(n) is int}


def _problems(text: str) -> list[Any]:
    found = orjson.loads(text)
    return found if isinstance(found, list) else []


def board(usual: Mapping[str, float] | None = None) -> Board:
    """The board now, in four statements; `usual` is `durations()` where the caller has it already (else one more)."""
    usual = durations() if usual is None else usual
    settings = conf()
    in_force = pauses()
    params = {
        "lease": settings.worker.lease_duration,
        "silent": settings.worker.silent_after,
        "grace": settings.recovery.lease_grace_period,
    }
    with connections["default"].cursor() as cursor:
        # Jobs first: who owns one is looked up by the second statement, and so is on the board.
        cursor.execute(RUNNING, params | {"limit": RUNNING_SHOWN + 1})
        jobs = cursor.fetchall()
        owners = {row[0] for row in jobs}
        cursor.execute(WORKERS, params | {"owners": list(owners), "limit": WORKERS_SHOWN + 1})
        found = cursor.fetchall()
        cursor.execute(NOW)
        (as_of,) = cursor.fetchone()
    truncated = len(jobs) > RUNNING_SHOWN or len(found) > WORKERS_SHOWN
    paused = frozenset(pause.value for pause in in_force if pause.scope == "queue")
    by_worker = _by_worker(jobs[:RUNNING_SHOWN], {row[0]: row[7] in {"Offline", "Silent"} for row in found}, usual)
    workers = []
    for id_, name, host, pid, version, queues, problems, state, seen_ago, started_ago in found[:WORKERS_SHOWN]:
        slots = _slots(queues)
        workers.append(
            BoardWorker(
                id_, name, host, pid, version, slots, _problems(problems), state, seen_ago, started_ago,
                by_worker.pop(id_, []), paused & slots.keys(),
            )
        )  # fmt: skip
    workers.sort(key=lambda worker: (RANKS.get(worker.state, 2), worker.name, worker.started_ago, worker.id))
    strays = sorted((job for left in by_worker.values() for job in left), key=lambda job: (-job.elapsed, job.id))
    return Board(as_of, workers, strays, in_force, truncated)


def _by_worker(
    rows: Sequence[tuple[Any, ...]], lost: Mapping[UUID, bool], usual: Mapping[str, float]
) -> dict[UUID, list[Running]]:
    """The jobs of each owner, as ordered. One whose owner is not known is as lost as a silent one's."""
    found: dict[UUID, list[Running]] = defaultdict(list)
    never = float("inf")
    for owner, id_, type_name, queue, slot, stage, progress, elapsed, started, returns_in, *rest in rows:
        cancelling, attempt, lost_count, worker = rest
        found[owner].append(
            Running(
                id_, type_name, queue, slot, stage, progress, elapsed, started,
                returns_in if lost.get(owner, True) else None, cancelling, attempt, lost_count, worker,
                elapsed > usual.get(type_name, never),
            )
        )  # fmt: skip
    return found
