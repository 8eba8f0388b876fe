"""The workers as they are seen from here: what they serve, what they run, whether they give a sign of life."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.db import connections

from jobs.conf import conf
from jobs.registry import catalogue

SHOWN = 500
# The state of `w` is derived by the database's clock: a stored "Online" of a worker that died says nothing.
STATE = """CASE
        WHEN w.state = 'Offline' OR w.seen_at < now() - make_interval(secs => %(lease)s) THEN 'Offline'
        WHEN w.seen_at < now() - make_interval(secs => %(silent)s) THEN 'Silent'
        ELSE w.state
    END"""
WORKERS = f"""
SELECT w.id, w.name, w.host, w.pid, w.version, w.queues, w.types, w.started_at, w.seen_at, w.stopped_at, w.problems,
    {STATE} AS state,
    extract(epoch FROM now() - w.seen_at)::float8 AS seen_ago,
    COALESCE(b.busy, 0) AS busy
FROM turno.workers AS w
LEFT JOIN (
    SELECT worker_id, count(*) AS busy FROM turno.jobs WHERE state = 'Processing' GROUP BY worker_id
) AS b ON b.worker_id = w.id
ORDER BY w.state = 'Offline', w.name, w.started_at DESC, w.id
LIMIT %(limit)s
"""
FIGURES = """
SELECT worker_id, sum(succeeded), sum(failed), sum(retried), sum(cancelled), sum(lost)
FROM turno.metrics_minute
WHERE minute >= now() - interval '1 hour' AND worker_id IS NOT NULL
GROUP BY worker_id
"""


class Seen(Protocol):
    """What the problems of workers are read from: a `WorkerRow` has it, and so has a worker of the board."""

    @property
    def name(self) -> str: ...
    @property
    def problems(self) -> list[Any]: ...
    @property
    def live(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process. `state`: Online, Draining, Silent or Offline; `seen_ago`: seconds; `queues`: slots by queue."""

    id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: dict[str, int]
    types: list[str]
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    problems: list[Any]
    state: str
    seen_ago: float
    busy: int

    @property
    def slots(self) -> int:
        """How many jobs it may run at once."""
        return sum(slots for slots in self.queues.values() if isinstance(slots, int))

    @property
    def live(self) -> bool:
        """It gave a sign of life a moment ago."""
        return self.state in {"Online", "Draining"}


@dataclass(frozen=True, slots=True)
class BrokenModule:
    """A handler module that can't be imported. `where`: the names of the workers, and "web" for this process."""

    module: str
    error: str
    where: list[str]


def broken_modules(seen: Sequence[Seen]) -> list[BrokenModule]:
    """What could not be imported, here and in the live ones of these workers, by module; reads no table."""
    found: dict[tuple[str, str], list[str]] = {}
    for problem in catalogue.problems():
        found.setdefault((problem.module, problem.error), []).append("web")
    for worker in seen:
        for problem in worker.problems if worker.live else ():
            if isinstance(problem, dict) and "module" in problem:
                found.setdefault((problem["module"], str(problem.get("error", ""))), []).append(worker.name)
    return [BrokenModule(module, error, where) for (module, error), where in sorted(found.items())]


@dataclass(frozen=True, slots=True)
class StuckHandler:
    """A handler that was asked to stop and runs on; `at` is the place where it is, or empty."""

    worker: str
    handler: str
    job: str
    error: str
    at: str


def stuck_handlers(seen: Sequence[Seen]) -> list[StuckHandler]:
    """What the live ones of these workers say of handlers that do not stop; reads no table."""
    return [
        StuckHandler(worker.name, *(str(problem.get(key, "")) for key in ("handler", "job", "error", "at")))
        for worker in seen
        for problem in (worker.problems if worker.live else ())
        if isinstance(problem, dict) and "handler" in problem
    ]


@dataclass(frozen=True, slots=True)
class WorkerTrouble:
    """What live workers say of a part of theirs, such as `broker`, `redis` or `processes`. `where`: their names."""

    part: str
    error: str
    where: list[str]


def troubles(seen: Sequence[Seen]) -> list[WorkerTrouble]:
    """What the live ones of these workers say of their parts, the same words once; reads no table."""
    found: dict[tuple[str, str], list[str]] = {}
    for worker in seen:
        for problem in worker.problems if worker.live else ():
            if isinstance(problem, dict) and "part" in problem:
                found.setdefault((str(problem["part"]), str(problem.get("error", ""))), []).append(worker.name)
    return [WorkerTrouble(part, error, sorted(where)) for (part, error), where in sorted(found.items())]


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """What a worker ended in the last hour: jobs that succeeded (`done`) and failed, executions to be retried, jobs
    cancelled, executions lost with it."""

    done: int
    failed: int
    retried: int
    cancelled: int
    lost: int


def worker_figures() -> dict[UUID, WorkerFigures]:
    """The last hour of each worker that ended anything in it, by id."""
    with connections["default"].cursor() as cursor:
        cursor.execute(FIGURES)
        return {id_: WorkerFigures(*(int(value) for value in sums)) for id_, *sums in cursor.fetchall()}


def _loaded(value: Any) -> Any:
    """A jsonb column of a plain cursor: Django's connections hand it out as text."""
    return json.loads(value) if isinstance(value, (str, bytes)) else value


def workers() -> list[WorkerRow]:
    """The workers, live ones first, by name; the last 500."""
    params = {"lease": conf().worker.lease_duration, "silent": conf().worker.silent_after, "limit": SHOWN}
    with connections["default"].cursor() as cursor:
        cursor.execute(WORKERS, params)
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for row in rows:
        row["queues"] = _loaded(row["queues"])
        row["problems"] = _loaded(row["problems"])
    return [WorkerRow(**row) for row in rows]
