"""The job types: those registered in this process, and those that were only ever seen."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.models import KnownType, Rate
from jobs.queries.circuits import CircuitRow, circuits
from jobs.queries.pauses import PauseRow, pauses
from jobs.ratelimit import RateLimit
from jobs.registry import catalogue, policy


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type. What follows `last_served_at` is None for one that is not registered here, but for what holds in the
    whole cluster: `circuit` (None while its breaker is closed), `paused` (None without a pause of the type), and its
    limits, which `limits_by` has set (None: they are declared). `timeout` in seconds."""

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
    paused: PauseRow | None = None
    max_running: int | None = None
    rate_limit: str | None = None
    limits_by: str | None = None


def job_types() -> list[TypeRow]:
    """Every type that is registered here or was ever seen, by name."""
    catalogue.load()
    seen = {row.name: row for row in KnownType.objects.all()[:5000]}
    broken = {row.type: row for row in circuits()}
    paused = {row.value: row for row in pauses() if row.scope == "type"}
    rates = {row.type: str(RateLimit(row.allowed, row.window)) for row in Rate.objects.all()[:5000]}
    rows = []
    for name in sorted({*catalogue.names(), *seen, *broken, *paused}):
        known = seen.get(name)
        everywhere: dict[str, Any] = {
            "first_seen_at": known.first_seen_at if known is not None else None,
            "last_served_at": known.last_served_at if known is not None else None,
            "circuit": broken.get(name),
            "paused": paused.get(name),
            "max_running": known.max_running if known is not None else None,
            "rate_limit": rates.get(name),
            "limits_by": known.limits_by if known is not None else None,
        }
        registered = catalogue.get(name)
        if registered is None:
            rows.append(TypeRow(name, False, **everywhere))
            continue
        effective = policy(registered)
        rows.append(
            TypeRow(
                name,
                True,
                description=registered.description,
                module=registered.module,
                isolation=registered.isolation,
                queue=effective.queue,
                priority=effective.priority,
                timeout=effective.timeout,
                max_attempts=effective.max_attempts,
                schema=catalogue.schema(name),
                **everywhere,
            )
        )
    return rows
