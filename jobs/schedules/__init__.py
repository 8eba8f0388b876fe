"""Recurring jobs: what people and programs do to them, and firing those that are due.

A declared one (section `recurring_jobs` of the configuration) follows its file: it can be enabled, disabled and
triggered, and neither edited nor deleted while it is declared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs import events, queries, transitions
from jobs.cron import Schedule, describe, parse
from jobs.errors import Conflict, NotFound
from jobs.schedules import store
from jobs.schedules.fields import MISFIRES, OVERLAPS, Checked, Wanted, check
from jobs.schedules.firing import fire_due, job_of_row, place_astray, until_next
from jobs.schedules.store import Row
from jobs.transitions import Active, Due
from jobs.transitions.sql import in_transaction

__all__ = [
    "MISFIRES",
    "OVERLAPS",
    "Checked",
    "Preview",
    "Put",
    "Wanted",
    "check",
    "create",
    "delete",
    "disable",
    "enable",
    "fire_due",
    "missing",
    "place_astray",
    "preview",
    "put",
    "trigger",
    "until_next",
    "update",
]
TRIES = 3
TOPICS = ("jobs",)


@dataclass(frozen=True, slots=True)
class Put:
    """What became of a `put`."""

    id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """A schedule that nobody has saved: in words (of the active language), and its next instants after `after`."""

    schedule: Schedule
    words: str
    after: datetime
    instants: list[datetime]


def missing(id_: UUID) -> NotFound:
    """What is said of a recurring job that is not there."""
    return NotFound(_("There is no recurring job %(id)s, or not any more.") % {"id": id_})


def create(wanted: Wanted, *, actor: str | None, enabled: bool = True) -> UUID:
    """A new one. Raises as `check` does, and Conflict (`reason` "name") when there is one of this name."""
    checked = check(wanted)
    made = _written(lambda cursor: store.insert(cursor, checked, enabled=enabled, by=actor, owner=actor))
    if made is None:
        raise _taken(wanted.name)
    return made


def update(id_: UUID, wanted: Wanted, *, seen: datetime, actor: str | None) -> UUID:
    """Change one whose `updated_at` was `seen`; its error is cleared.

    Raises as `check` does, NotFound, and Conflict: `reason` "seen" (somebody else has changed it since), "declared" or
    "name".
    """
    checked = check(wanted)

    def work(cursor: CursorWrapper) -> UUID:
        row = _locked(cursor, id_)
        _refuse_declared(row)
        if row.updated_at != seen:
            text = _("Somebody else has changed this recurring job meanwhile. Load it again and repeat your change.")
            raise Conflict(text, reason="seen")
        if wanted.name != row.name and store.by_name(cursor, wanted.name) is not None:
            raise _taken(wanted.name)
        store.update(cursor, row, checked, enabled=row.enabled, by=_kept(row, actor))
        return row.id

    try:
        return _written(work)
    except IntegrityError as error:  # somebody else made one of this name just now
        raise _taken(wanted.name) from error


def put(wanted: Wanted, *, actor: str | None, enabled: bool | None = None) -> Put:
    """Create the one of this name, or make it so: the last one wins. `enabled` None: as it is, a new one is enabled.

    Raises as `check` does, and Conflict (`reason` "declared").
    """
    checked = check(wanted)

    def work(cursor: CursorWrapper) -> Put | None:
        row = store.by_name(cursor, wanted.name)
        if row is None:
            made = store.insert(cursor, checked, enabled=enabled is not False, by=actor, owner=actor)
            return None if made is None else Put(made, True)
        _refuse_declared(row)
        on = row.enabled if enabled is None else enabled
        by = actor if row.enabled and not on else _kept(row, actor)
        store.update(cursor, row, checked, enabled=on, by=by)
        return Put(row.id, False)

    for _try in range(TRIES):  # somebody else made one of this name, or deleted it, in between
        if (done := _written(work)) is not None:
            return done
    raise _taken(wanted.name)


def trigger(id_: UUID, *, actor: str | None) -> UUID:
    """Make a job of it now, whatever its schedule says, also of one that is disabled. Answers the job's id.

    Raises NotFound; Conflict (`reason` "overlap") where overlaps are skipped and the job `extra["job"]` is not final;
    and what enqueueing raises when its type or payload is refused.
    """
    for _try in range(TRIES):
        row = in_transaction("default", lambda cursor: store.by_id(cursor, id_))
        if row is None:
            raise missing(id_)
        due = _due(row, owner=actor)
        made = transitions.trigger(due, job_of_row(due))
        if isinstance(made, Active):
            text = _("Job %(job)s of it is still %(state)s, and this recurring job does not overlap.")
            raise Conflict(
                text % {"job": made.id, "state": made.state}, reason="overlap", job=str(made.id), state=made.state
            )
        if made is not None:
            events.changed(jobs=[made.id], topics=("jobs", "queues"))
            return made.id
    raise Conflict(_("Somebody else has changed this recurring job meanwhile. Try again."), reason="seen")


def enable(id_: UUID, *, actor: str | None) -> None:
    """Let it fire, from now on; also one that was left alone because of an error is tried again.

    Raises NotFound, BadCron, and Conflict (`reason` "declared") for one that its file does not declare any more.
    """

    def work(cursor: CursorWrapper) -> None:
        row = _locked(cursor, id_)
        if row.undeclared:
            text = _("The configuration does not declare it any more. Edit and save it to keep it as one made by hand.")
            raise Conflict(text, reason="declared")
        if not row.enabled or row.error is not None or not row.placed:
            store.switch(cursor, row, parse(row.cron, row.timezone).next(row.now))

    _written(work)


def disable(id_: UUID, *, actor: str | None) -> None:
    """Let it fire no more; jobs that it made stay. Raises NotFound."""

    def work(cursor: CursorWrapper) -> None:
        row = _locked(cursor, id_)
        if row.enabled:
            store.switch(cursor, row, None, by=actor or "open")

    _written(work)


def delete(id_: UUID, *, actor: str | None) -> None:
    """Remove it; jobs that it made stay. Raises NotFound, and Conflict (`reason` "declared")."""

    def work(cursor: CursorWrapper) -> None:
        row = _locked(cursor, id_)
        _refuse_declared(row)
        store.delete(cursor, id_)

    _written(work)


def preview(cron: object, timezone: object, *, after: datetime | None = None, count: int = 5) -> Preview:
    """What a schedule means, and its next `count` instants after `after` (None: the database's now). Raises BadCron."""
    schedule = parse(cron, timezone)
    start = queries.now() if after is None else after
    return Preview(schedule, describe(schedule), start, schedule.upcoming(start, count))


def _written[T](work: Callable[[CursorWrapper], T]) -> T:
    done = in_transaction("default", work)
    events.changed(topics=TOPICS)
    return done


def _locked(cursor: CursorWrapper, id_: UUID) -> Row:
    row = store.by_id(cursor, id_)
    if row is None:
        raise missing(id_)
    return row


def _refuse_declared(row: Row) -> None:
    if row.declared:
        text = _("It is declared in the configuration: change it there, or disable it here.")
        raise Conflict(text, reason="declared")


def _kept(row: Row, actor: str | None) -> str | None:
    """Who has disabled it stays; of one that its file dropped that is whoever takes it over."""
    return actor if row.undeclared else None


def _taken(name: str) -> Conflict:
    return Conflict(_("There is a recurring job called %(name)s already.") % {"name": name}, reason="name")


def _due(row: Row, *, owner: str | None) -> Due:
    return Due(
        row.id, row.version, row.name, row.type, row.queue, row.priority, row.payload, row.cron, row.timezone,
        row.overlap, row.misfire, owner or row.owner, row.now, row.now,
    )  # fmt: skip
