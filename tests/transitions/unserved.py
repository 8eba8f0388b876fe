"""Types that no live worker of a queue has: rows that say so, and the leader's verbs as workers call them."""

from typing import Any
from uuid import UUID

from jobs import transitions
from jobs.states import State
from tests.transitions.rows import Made, ago, execute, make_job, make_worker, select

TIMES = {"silent_after": 15.0, "unwatched_after": 45.0}
GRACE = 3600.0


def worker(**columns: Any) -> UUID:
    """A live worker of the queue that has not the type "a.type"."""
    return make_worker(**({"queues": {"default": 2}, "types": ["other"]} | columns))


def waiting(**columns: Any) -> Made:
    """A job of that type in its queue."""
    return make_job(**({"type": "a.type"} | columns))


def parked(age: float = 7200.0, **columns: Any) -> Made:
    """A job that is parked for its type, `age` seconds after it was enqueued."""
    row = {"type": "a.type", "waiting_for": "unknown_type", "gate": "a.type", "enqueued_at": ago(age)}
    return make_job(State.SCHEDULED, **(row | columns))


def unserved(type_: str = "a.type", queue: str = "default", *, since: float = 7200.0, seen: float = 1.0) -> None:
    """What the leader has in its book: so many seconds ago it saw the type missing first, and last."""
    execute(
        "INSERT INTO turno.unserved_types (queue, type, since, seen_at) VALUES (%s, %s, now() - make_interval(secs =>"
        " %s), now() - make_interval(secs => %s))", queue, type_, since, seen,
    )  # fmt: skip


def book() -> dict[tuple[str, str], dict[str, Any]]:
    """What stands in the book, by queue and type."""
    found = select("SELECT queue, type, since, seen_at FROM turno.unserved_types")
    return {(row["queue"], row["type"]): row for row in found}


def watch(using: str = "default") -> None:
    transitions.watch_unserved(**TIMES, using=using)


def park(using: str = "default", *, limit: int = 100) -> list[UUID]:
    return transitions.park_unserved(limit=limit, unserved_for=15.0, **TIMES, using=using)


def fail(using: str = "default", *, limit: int = 100) -> list[UUID]:
    return transitions.fail_unknown(limit=limit, grace=GRACE, **TIMES, using=using)
