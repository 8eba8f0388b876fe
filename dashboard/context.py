"""What every page's frame needs: who looks, in which zone, and the counts beside the screens' names."""

from dataclasses import dataclass
from typing import Any

from django.db import Error
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from dashboard import reads, zone
from dashboard.shared import PATIENT, shared
from dashboard.words import words
from jobs import access, queries
from jobs.version import VERSION


@dataclass(frozen=True, slots=True)
class Navigation:
    """The counts in the navigation; None where the database did not answer."""

    workers: int | None
    letters: int | None
    letters_estimated: bool = False
    paused: int = 0  # queues
    broken: int = 0  # invariants


def navigation() -> Navigation:
    """The counts, which all viewers share; never raises."""
    try:
        return shared("navigation", PATIENT, _counted)
    except Error:
        return Navigation(None, None)


def _counted() -> Navigation:
    stats, fleet = reads.stats(), reads.fleet()
    live = sum(worker.state != "Offline" for worker in fleet)
    paused = sum(pause.scope == "queue" for pause in shared("pauses", PATIENT, queries.pauses))
    looked = queries.broken_invariants()
    broken = 0 if looked is None else len(looked[1])
    return Navigation(live, stats.dead_letters, "dead_letters" in stats.estimated, paused, broken)


def app(request: HttpRequest) -> dict[str, Any]:
    """Context processor of the pages; nothing is asked before a template uses it."""
    return {
        "version": VERSION,
        "nav": SimpleLazyObject(navigation),
        "words": words,  # a template calls it
        "zone_label": SimpleLazyObject(lambda: zone.label(timezone.get_current_timezone())),
        "zone_name": SimpleLazyObject(timezone.get_current_timezone_name),
        "open_house": SimpleLazyObject(lambda: access.mode(request) is access.Mode.OPEN),
        "can_operate": SimpleLazyObject(lambda: access.may_operate(request)),
    }
