"""The job types: those registered in this process, and those that were only ever seen."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.models import KnownType
from jobs.queries.circuits import CircuitRow, circuits
from jobs.registry import catalogue, policy


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type. What follows `last_served_at` is None for one that is not registered here, but `circuit`, which is None
    for one whose breaker is closed; `timeout` in seconds."""

    name: str
    registered: bool
    first_seen_at: datetime | None
    last_served_at: datetime | None
    description: str = ""
    module: str | None = None
    isolation: str | None = None
    queue: str | None = None
    priority: int | None = None
    timeout: float | None = None
    max_attempts: int | None = None
    circuit: CircuitRow | None = None
    schema: dict[str, Any] | None = None


def job_types() -> list[TypeRow]:
    """Every type that is registered here or was ever seen, by name."""
    catalogue.load()
    seen = {row.name: row for row in KnownType.objects.all()[:5000]}
    broken = {row.type: row for row in circuits()}
    rows = []
    for name in sorted({*catalogue.names(), *seen, *broken}):
        known = seen.get(name)
        first = known.first_seen_at if known is not None else None
        last = known.last_served_at if known is not None else None
        registered = catalogue.get(name)
        if registered is None:
            rows.append(TypeRow(name, False, first, last, circuit=broken.get(name)))
            continue
        effective = policy(registered)
        rows.append(
            TypeRow(
                name,
                True,
                first,
                last,
                description=registered.description,
                module=registered.module,
                isolation=registered.isolation,
                queue=effective.queue,
                priority=effective.priority,
                timeout=effective.timeout,
                max_attempts=effective.max_attempts,
                circuit=broken.get(name),
                schema=catalogue.schema(name),
            )
        )
    return rows
