"""Boards for tests: in memory for the pure parts, as rows of the database for the pages."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from jobs.queries import Board, BoardWorker, Depth, PauseRow, Running
from tests.transitions import rows

NOW = datetime(2026, 10, 14, 14, 32, 7, tzinfo=UTC)
ALL = {"critical": 2, "default": 4, "reports": 2}
_pids = count(1000)


def running(type: str = "report.generate", queue: str = "default", slot: int = 1, **more: Any) -> Running:
    """A job in a slot; `more` overrides."""
    told = {
        "id": uuid4(), "stage": "Montando o PDF", "progress": 62, "elapsed": 84.0, "started": True,
        "returns_in": None, "cancelling": False, "attempt": 1, "lost_count": 0, "worker": "w", "slow": False,
    }  # fmt: skip
    return Running(type=type, queue=queue, slot=slot, **(told | more))


def worker(
    name: str = "worker-01",
    queues: dict[str, int] | None = None,
    jobs: Iterable[Running] = (),
    state: str = "Online",
    **more: Any,
) -> BoardWorker:
    """A worker on the board; `more` overrides."""
    told = {
        "id": uuid4(), "host": "h", "pid": 1, "version": "1", "problems": [], "seen_ago": 2.0, "started_ago": 9.0,
        "paused": frozenset(),
    } | more  # fmt: skip
    return BoardWorker(name=name, queues=dict(queues or ALL), state=state, running=list(jobs), **told)


def board(*workers: BoardWorker, strays: Iterable[Running] = (), pauses: Iterable[PauseRow] = ()) -> Board:
    """A board of these workers."""
    return Board(NOW, list(workers), list(strays), list(pauses), False)


def depth(queue: str = "default", waiting: int = 0, oldest_for: float | None = None, **more: Any) -> Depth:
    """A queue; `more` overrides."""
    told = {
        "estimated": False, "parked": 0, "parked_at_least": False, "busy": 0, "capacity": 4, "free": 4, "workers": 1,
        "paused": None,
    }  # fmt: skip
    return Depth(queue=queue, waiting=waiting, oldest_for=oldest_for, **(told | more))


def pause(queue: str) -> PauseRow:
    """A queue that is paused."""
    return PauseRow("queue", queue, "fechamento", "ana", NOW, 720.0, None, None)


def make_worker(
    name: str = "worker-7",
    queues: dict[str, Any] | None = None,
    state: str = "Online",
    seen_ago: float = 0,
    **more: Any,
) -> UUID:
    """The row of a worker that was seen so many seconds ago."""
    id_ = uuid4()
    rows.execute(
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state,"
        " problems, seen_at, started_at) VALUES (%s, %s, 'host-9', 'b', 'n', %s, '1', '1', %s, %s, %s,"
        " now() - %s * interval '1 second', now() - interval '1 hour')",
        id_, name, next(_pids), json.dumps(queues or {"default": 4}), state, json.dumps(more.get("problems", [])),
        seen_ago,
    )  # fmt: skip
    return id_
