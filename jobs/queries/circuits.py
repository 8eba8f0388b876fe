"""Breakers that are not closed: why, since when, who waits behind them, and when one job is tried."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

COUNTED = 1000
CIRCUITS = """
SELECT c.type, c.state, c.opened_at, GREATEST(0, extract(epoch FROM now() - c.opened_at))::float8,
    CASE WHEN c.retry_at IS NOT NULL THEN GREATEST(0, extract(epoch FROM c.retry_at - now())) END::float8,
    c.executions, c.failures, c.span, c.probe_job_id, LEAST(parked.jobs, %(most)s), parked.jobs > %(most)s
FROM (
    SELECT * FROM turno.circuits AS c WHERE state <> 'closed' AND (%(type)s::text IS NULL OR type = %(type)s::text)
      AND (%(idle)s OR state = 'half_open' OR retry_at > now() OR EXISTS (
          SELECT FROM turno.jobs WHERE waiting_for = 'circuit' AND gate = c.type
      ))
    ORDER BY opened_at, type LIMIT %(limit)s
) AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
        SELECT FROM turno.jobs
        WHERE waiting_for = 'circuit' AND gate = c.type LIMIT %(most)s + 1
    ) AS behind
) AS parked
ORDER BY c.opened_at, c.type
"""


@dataclass(frozen=True, slots=True)
class CircuitRow:
    """A breaker that is open or half_open. `open_for`, `retry_in` (None while a job is tried, 0: the next job is) and
    `span` in seconds; `failures` of `executions` within `span` opened it; `probe`: the job that is tried; `parked`: the
    jobs that wait for it, counted up to 1,000 (`at_least`: there are more)."""

    type: str
    state: str
    opened_at: datetime
    open_for: float
    retry_in: float | None
    executions: int
    failures: int
    span: float
    probe: UUID | None
    parked: int
    at_least: bool


def circuits(*, limit: int = 5000, idle: bool = True) -> list[CircuitRow]:
    """Those that are not closed, the longest open first. `idle` False: without those that only wait for a next job to
    try, while there is none."""
    return _rows({"type": None, "limit": limit, "idle": idle})


def circuit(type_name: str) -> CircuitRow | None:
    """That of a type; None while it is closed, or never was otherwise."""
    found = _rows({"type": type_name, "limit": 1, "idle": True})
    return found[0] if found else None


def _rows(params: dict[str, Any]) -> list[CircuitRow]:
    with connections["default"].cursor() as cursor:
        cursor.execute(CIRCUITS, params | {"most": COUNTED})
        return [CircuitRow(*row) for row in cursor.fetchall()]
