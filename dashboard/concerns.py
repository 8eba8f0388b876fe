"""What needs a person as the list shows it: a partial for each kind, and the door that helps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.queries import Board, Concern, Kind

FIRST = 4  # as many as stand beside the chart; the others are folded away


@dataclass(frozen=True, slots=True)
class Point:
    """A concern and the partial that says it."""

    key: str
    severity: str
    facts: dict[str, Any]
    template: str


def point(concern: Concern) -> Point:
    """As the list shows it. Jobs whose worker is not even known are a kind of their own here."""
    stray = concern.kind is Kind.WORKER_LOST and concern.facts["name"] is None
    name = "strays" if stray else str(concern.kind)
    return Point(concern.key, concern.severity, concern.facts, f"dashboard/painel/concerns/{name}.html")


def listed(board: Board, concerns: Sequence[Concern]) -> dict[str, Any]:
    """The list's context: what stands there, what is folded, how many there are. That nobody works comes first."""
    points = [point(concern) for concern in concerns]
    if not any(worker.live for worker in board.workers):
        points.insert(0, Point("no-workers", "failure", {}, "dashboard/painel/concerns/no_workers.html"))
    return {"first": points[:FIRST], "folded": points[FIRST:], "concerns": len(points)}
