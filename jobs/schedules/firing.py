"""What becomes of recurring jobs that are due, worked out row by row: what is wrong with one is that row's alone.

An instant is on time for `scheduler.interval`, and one that is alone for `scheduler.misfire_grace`; others were missed,
and `misfire` says what runs of them. A row that can't fire is marked with its error, and left alone until it is edited.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs import events, jsonvalues, transitions
from jobs.conf import Settings, conf
from jobs.cron import BadCron, Schedule, parse
from jobs.errors import Invalid, Refused, UnknownType
from jobs.ids import new_id
from jobs.schedules import store
from jobs.schedules.fields import MISFIRES, OVERLAPS, job_of
from jobs.text import clean, first_line
from jobs.transitions import Due, Firing
from jobs.transitions.insert import NewJob
from jobs.transitions.sql import in_transaction, refused

log = logging.getLogger(__name__)
CAUGHT_UP = 100  # instants at most that "all" runs of an outage
FRESH = 60.0  # seconds for which counts what was read, at least: a batch of long outages takes its time
ERROR_LENGTH = 500
PASSING = (DatabaseError, InterfaceError, OSError, MemoryError)  # faults that are no row's


def fire_due(*, limit: int = 200, without: set[UUID] | None = None, using: str = "default") -> int:
    """Fire a batch of recurring jobs that are due; how many there were that nobody else fired.

    Safe when many do it at once. What the database refuses even to mark, or there is no memory for, is put into
    `without`, and passed over.
    """
    aside = set() if without is None else without
    found = transitions.due(limit=limit, without=aside, using=using)
    if not found:
        return 0
    settings = conf()
    work = _Work(settings, using)
    firings = work.firings(found, aside)
    taken = work.write(firings, aside)
    for firing in firings:
        if firing.error is not None and firing.due.id in taken:
            log.warning("recurring.error", extra={"recurring": firing.due.name, "error": firing.error})
    if taken:
        events.changed(jobs=None, topics=("jobs", "queues"))
    return len(taken)


class _Work:
    """One batch."""

    def __init__(self, settings: Settings, using: str) -> None:
        self._grace = settings.scheduler.misfire_grace
        self._tick = settings.scheduler.interval
        self._remembered = settings.resilience.unknown_type_grace
        self._using = using
        self._served: dict[str, bool] = {}

    def firings(self, found: Sequence[Due], aside: set[UUID]) -> list[Firing]:
        """What becomes of each. Where this machine has no file or no memory left for one, it is put into `aside`."""
        made = []
        for due in found:
            try:
                made.append(self.firing(due))
            except (OSError, MemoryError):
                log.exception("recurring.passed_over", extra={"recurring": due.name})
                aside.add(due.id)
        return made

    def firing(self, due: Due) -> Firing:
        """What becomes of one. Whatever is wrong with it becomes its error, and what is wrong with the machine or the
        connection does not: it is raised."""
        try:
            schedule = parse(due.cron, due.timezone)
            following = schedule.next(due.instant)
            if following > due.now:
                total, instants = 1, [due.instant]
            else:
                total, instants = self._missed(due, schedule)
                following = schedule.next(due.now)
            runs = self._runs(due, instants, alone=total == 1)
            return Firing(due, following, None, total - len(runs), self._jobs(due, runs))
        except Refused as refusal:
            return Firing(due, None, told(refusal))
        except PASSING:
            raise
        except Exception as error:
            log.exception("recurring.broken", extra={"recurring": due.name})
            return Firing(due, None, clean(f"{type(error).__name__}: {error}", ERROR_LENGTH, one_line=True))

    def _missed(self, due: Due, schedule: Schedule) -> tuple[int, list[datetime]]:
        """How many have come since it was due, that one too, and the last of them."""
        later = schedule.missed(due.instant, due.now, CAUGHT_UP)
        total = 1 + (len(later) if len(later) < CAUGHT_UP else schedule.count(due.instant, due.now))
        return total, [due.instant, *later][-CAUGHT_UP:]

    def _runs(self, due: Due, instants: list[datetime], *, alone: bool) -> list[datetime]:
        """Those that run, the oldest first."""
        if due.misfire == "all":
            return instants
        late = timedelta(seconds=self._grace if alone else self._tick)
        on_time = [instant for instant in instants if due.now - instant <= late]
        if due.overlap == "skip":  # the others would meet the first one's job
            on_time = on_time[-1:]
        return on_time or (instants[-1:] if due.misfire == "once" else [])

    def _jobs(self, due: Due, instants: Sequence[datetime]) -> tuple[NewJob, ...]:
        """A job an instant; made once even where none runs, so that what is wrong with it is seen."""
        # "all" wants each of them to run, "skip" no two at once: then they run one after the other.
        made = self.job(due, in_turn=due.overlap == "skip" and len(instants) > 1)
        return tuple(made._replace(id=new_id(), fired_for=instant) for instant in instants)

    def job(self, due: Due, *, in_turn: bool = False) -> NewJob:
        """Its job, for no instant yet; `in_turn`: it waits until no other such job of it runs, as with "queue".

        Raises Refused. A type without a handler here is fired all the same where a worker had it not long ago: not
        every worker has every handler, and those that have are maybe just starting.
        """
        for name, value, known in (("overlap", due.overlap, OVERLAPS), ("misfire", due.misfire, MISFIRES)):
            if value not in known:
                raise ValueError(f"{name}: {value}")
        payload = _payload(due)
        given: dict[str, Any] = {"queue": due.queue, "priority": due.priority, "owner": due.owner, "origin": due.name}
        try:
            made = job_of(due.type, payload, **given)
        except UnknownType:
            if not self._is_served(due.type):
                raise
            made = job_of(due.type, payload, **given, unknown="accept")
        if in_turn or due.overlap == "queue":
            made = made._replace(concurrency_key=f"recurring:{due.id}", concurrency_limit=1)
        return made._replace(recurring_job_id=due.id)

    def _is_served(self, name: str) -> bool:
        if name not in self._served:
            found = transitions.served_types([name], age=self._remembered, using=self._using)
            self._served[name] = bool(found)
        return self._served[name]

    def write(self, firings: Sequence[Firing], aside: set[UUID]) -> set[UUID]:
        """Fire them together; where the database refuses a value, each alone. Those that were ours to fire."""
        try:
            return set(transitions.fire(firings, fresh=max(self._grace, FRESH), using=self._using))
        except (DatabaseError, UnicodeError) as error:
            if not refused(error):
                raise
            if len(firings) > 1:
                return set().union(*(self.write([firing], aside) for firing in firings))
            [firing] = firings
            if firing.error is not None or not firing.jobs:
                log.exception("recurring.refused", extra={"recurring": firing.due.name})
                aside.add(firing.due.id)
                return set()
            log.warning("recurring.error", extra={"recurring": firing.due.name, "error": first_line(error)})
            text = _("The database refused its job: %(error)s") % {"error": first_line(error)}
            return self.write([Firing(firing.due, None, clean(text, ERROR_LENGTH, one_line=True))], aside)


def place_astray(*, using: str = "default") -> int:
    """Give those an instant that are enabled and have none, as people's SQL may leave them; how many there were."""

    def work(cursor: CursorWrapper) -> int:
        rows = store.astray(cursor)
        for row in rows:
            try:
                store.place(cursor, row, parse(row.cron, row.timezone).next(row.now))
            except BadCron as refusal:
                store.place(cursor, row, None, told(refusal))
        return len(rows)

    return in_transaction(using, work)


def _payload(due: Due) -> Any:
    try:
        return jsonvalues.loads(due.payload.encode())
    except Refused as refusal:  # people's SQL; it speaks of a request's body
        text = _("Expected JSON.")
        raise Invalid(text, errors={"payload": [text]}) from refusal


def job_of_row(due: Due, *, using: str = "default") -> NewJob:
    """The job of a recurring one that somebody triggers. Raises Refused, as for every other job."""
    return _Work(conf(), using).job(due)


def told(refusal: Refused) -> str:
    """All that is wrong, with the fields' names, in one line."""
    said = [f"{name}: {messages[0]}" for name, messages in refusal.errors.items()] or [str(refusal)]
    return clean(" ".join(said), ERROR_LENGTH, one_line=True)


def until_next(*, without: Collection[UUID] = (), using: str = "default") -> float | None:
    """Seconds until the next one but those `without` is due (0 when one is); None when none is within the hour."""
    return transitions.next_firing(without=without, using=using)
