"""Rows of `jobs.queries` in the shape of the answers."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jobs.api.openapi import translated
from jobs.queries import Detail, TypeRow
from jobs.queries.payloadtext import masked
from jobs.reasons import Why, explained


def _label(row: Mapping[str, Any]) -> dict[str, Any] | None:
    label = row.get("worker_label")
    if row["worker_id"] is None and not label:
        return None
    return {"id": row["worker_id"], **(label if isinstance(label, dict) else {})}


def job(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a list, or the columns of one job."""
    return {**row, "worker": _label(row)}


def _attempt(row: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("id", "name", "host", "pid", "version")
    worker = {part: row[f"worker_{part}"] for part in parts}
    return {**row, "worker": worker if any(value is not None for value in worker.values()) else None}


def _reason(why: Why) -> dict[str, Any]:
    return {
        "kind": str(why.kind),
        "text": why.text,
        "note": why.note,
        "help": why.help,
        "command": why.code or None,
        "ends_in": why.left,
        "since_for": why.since,
        "jobs": [asdict(other) for other in why.others],
        "more_jobs": why.more,
    }


def detail(found: Detail) -> dict[str, Any]:
    """Everything about one job."""
    return {
        **job(found.job),
        "payload": masked(found.job["type"], found.job["payload"]),
        "queue_served": found.queue_served,
        "type_served": found.type_served,
        "fails_in": found.fails_in,
        "waiting": [_reason(why) for why in explained(found.job)],
        "attempts": [_attempt(row) for row in found.attempts],
        "timeline": found.changes,
    }


def job_type(row: TypeRow) -> dict[str, Any]:
    """A type of the catalogue."""
    return {
        "name": row.name,
        "registered": row.registered,
        "description": row.description,
        "module": row.module,
        "isolation": row.isolation,
        "queue": row.queue,
        "priority": row.priority,
        "timeout": row.timeout,
        "max_attempts": row.max_attempts,
        "max_running": row.max_running,
        "rate_limit": row.rate_limit,
        "limits_by": row.limits_by,
        "paused": row.paused,
        "circuit": None if row.circuit is None else asdict(row.circuit),
        "payload_schema": translated(row.schema),
        "first_seen_at": row.first_seen_at,
        "last_served_at": row.last_served_at,
    }
