"""Recurring jobs in a worker: the leader fires what is due; each one brings the declared ones up to date once."""

from time import monotonic
from uuid import UUID

from django.utils.translation import gettext as _

from jobs import schedules
from jobs.conf import conf
from jobs.schedules.declared import Problem, synchronise
from workers.connections import ENGINE
from workers.instants import Instants

REFUSED = 60.0  # seconds after which is tried again what was passed over, and looked for what would never fire
STARTED = 3600.0  # seconds between two looks whether the declared ones were brought up to date, which is done once


class Recurring(Instants):
    """Fires what is due, batch after batch."""

    def __init__(self) -> None:
        super().__init__(self._fire, lambda: schedules.until_next(without=self._refused, using=ENGINE))
        self._refused: set[UUID] = set()
        self._again = monotonic() + REFUSED

    def _fire(self) -> int:
        """One batch; how many it fired."""
        if monotonic() >= self._again:
            self._refused.clear()
            self._again = monotonic() + REFUSED
            schedules.place_astray(using=ENGINE)
        return schedules.fire_due(limit=conf().scheduler.batch_size, without=self._refused, using=ENGINE)


class Declared:
    """Brings the declared ones up to date, once, as soon as there is a database."""

    def __init__(self) -> None:
        self._done = False
        self._found: list[Problem] = []

    def run_once(self) -> int:
        """The first time; a failure is tried again."""
        if not self._done:
            self._found = synchronise(using=ENGINE)
            self._done = True
        return 0

    def problems(self) -> list[dict[str, str]]:
        """What a person should know of those that could not be brought up to date."""
        return [
            {
                "part": "recurring_jobs",
                "error": _("Recurring job %(name)s: %(error)s") % {"name": problem.name, "error": problem.error},
            }
            for problem in self._found
        ]
