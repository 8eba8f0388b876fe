"""What stands in the outbox, and messages put there past the verbs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import orjson

from jobs.conf import overridden
from jobs.transitions import OutboxRow, lease_outbox
from tests.transitions.rows import Made, Sql, execute, make_job, select

BROKER = {"transport": "rabbitmq", "urls": ["amqp://127.0.0.1:1/"]}


@contextmanager
def with_broker(**messaging: Any) -> Iterator[None]:
    """A broker is configured, so that messages are written; nobody connects to it."""
    with overridden(messaging={**BROKER, **messaging}):
        yield


def put(made: Made, **columns: Any) -> int:
    """Put the message of the job's token into the outbox; returns its id."""
    row = {"job_id": made.id, "dispatch_id": made.token, "queue": made.queue} | columns
    row["body"] = orjson.dumps(row.get("body", {})).decode()
    values = [str(v) if isinstance(v, Sql) else "%s" for v in row.values()]
    [found] = select(
        f"INSERT INTO turno.outbox_messages ({', '.join(row)}) VALUES ({', '.join(values)}) RETURNING id",
        *(v for v in row.values() if not isinstance(v, Sql)),
    )
    return found["id"]


def waiting(count: int, **columns: Any) -> list[tuple[Made, int]]:
    """So many Enqueued jobs, each with its message: (job, id of the message), in order."""
    mades = [make_job(**columns) for _ in range(count)]
    return [(made, put(made)) for made in mades]


def outbox(id_: UUID | None = None) -> list[dict[str, Any]]:
    """What stands in the outbox (of one job), in order."""
    found = select(
        "SELECT *, extract(epoch FROM locked_until - now())::float8 AS due_in FROM turno.outbox_messages "
        "WHERE %s::uuid IS NULL OR job_id = %s::uuid ORDER BY id", id_, id_,
    )  # fmt: skip
    return [row | {"body": orjson.loads(row["body"]) if isinstance(row["body"], str) else row["body"]} for row in found]


def lease(limit: int = 100, *, lasts: float = 60.0, using: str = "default") -> tuple[UUID, list[OutboxRow]]:
    """Lease messages: the lease's id, and what was got."""
    lock_id = uuid4()
    return lock_id, lease_outbox(limit=limit, lock_id=lock_id, lease=lasts, using=using).messages


def all_due() -> None:
    """Let the time of whatever waits in back-off, and every lease, be over."""
    execute("UPDATE turno.outbox_messages SET locked_until = now() - interval '1 second' WHERE locked_until > now()")
