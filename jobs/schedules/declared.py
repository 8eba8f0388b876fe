"""Recurring jobs that the configuration declares: each worker brings the rows up to date when it starts.

The schedule, the payload and the rest follow the file; whether one is enabled is the file's to say when the row is
made, and people's afterwards. What the file drops is not deleted, for it may come back, and its jobs name it: it is
disabled, and says why; named again, it is as it was. A row that somebody made by hand is never overwritten, and what
can't be used (a bad expression, an unknown type) is told and changes nothing: the row keeps what it had. Every worker
has to have the same section; the one that started last is right. Two examples come with the samples, disabled.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs import events
from jobs.conf import Settings, conf
from jobs.errors import Refused
from jobs.jsonvalues import canonical_hash, loads
from jobs.schedules import store
from jobs.schedules.fields import Checked, Wanted, check
from jobs.schedules.firing import told
from jobs.schedules.store import Row
from jobs.sections_recurring import DeclaredRecurring
from jobs.text import first_line
from jobs.transitions.sql import in_transaction, refused

log = logging.getLogger(__name__)
UNNAMED = "file"  # who disabled one that its file declares disabled, until somebody enables it
EXAMPLES = {
    "example-report": DeclaredRecurring(type="report.generate", cron="30 7 * * mon-fri", enabled=False),
    "example-sync": DeclaredRecurring(type="integration.sync", cron="*/5 * * * *", enabled=False),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One that could not be brought up to date, and why."""

    name: str
    error: str


def wanted_of(settings: Settings) -> dict[str, DeclaredRecurring]:
    """What is declared now, by name."""
    examples = EXAMPLES if settings.samples.enabled else {}
    return {**examples, **settings.recurring_jobs}


def synchronise(*, using: str = "default") -> list[Problem]:
    """Bring the rows up to date; answers what could not be. Done twice, or by many at once, it is done once."""
    declared = wanted_of(conf())
    problems: list[Problem] = []
    good: dict[str, Checked] = {}
    for name, entry in declared.items():
        try:
            good[name] = check(_wanted(name, entry))
        except Refused as refusal:
            problems.append(Problem(name, told(refusal)))

    def work(cursor: CursorWrapper) -> tuple[int, list[Problem]]:
        rows = {row.name: row for row in store.declared_or_named(cursor, list(declared))}
        changed, found = 0, []
        for name, checked in sorted(good.items()):  # in one order: others start at the same moment
            row = rows.get(name)
            if row is not None and row.source != "declared":
                found.append(Problem(name, _("A recurring job of this name was made by hand; it stays as it is.")))
                continue
            try:
                with transaction.atomic(using=using):
                    changed += _follow(cursor, row, checked, declared[name])
            except (DatabaseError, UnicodeError) as error:
                if not refused(error):
                    raise
                found.append(Problem(name, first_line(error)))
        dropped = [row for name, row in rows.items() if name not in declared and row.declared]
        for row in dropped:
            store.drop(cursor, row)
        return changed + len(dropped), found

    changed, found = in_transaction(using, work)
    if changed:
        log.info("recurring.synchronised", extra={"changed": changed})
        events.changed(topics=("jobs",))
    problems += found
    for problem in problems:
        log.warning("recurring.not_declared", extra={"recurring": problem.name, "error": problem.error})
    return problems


def _wanted(name: str, entry: DeclaredRecurring) -> Wanted:
    return Wanted(
        name=name,
        type=entry.type,
        cron=entry.cron,
        timezone=entry.timezone,
        payload=entry.payload,
        queue=entry.queue,
        priority=entry.priority,
        overlap=entry.overlap,
        misfire=entry.misfire,
    )


def _follow(cursor: CursorWrapper, row: Row | None, checked: Checked, entry: DeclaredRecurring) -> int:
    """Make or change one; whether there was anything to do."""
    if row is None:
        by = None if entry.enabled else UNNAMED
        return int(store.insert(cursor, checked, enabled=entry.enabled, source="declared", by=by) is not None)
    if row.undeclared:
        _dropped, disabled, by = (row.disabled_by or "").partition(":")
        store.update(cursor, row, checked, enabled=not disabled, source="declared", by=by)
        return 1
    if row.error is None and _same(row, checked):
        return 0
    store.update(cursor, row, checked, enabled=row.enabled, source="declared")
    return 1


def _same(row: Row, checked: Checked) -> bool:
    wanted, schedule = checked.wanted, checked.schedule
    ours: Mapping[str, object] = {
        "type": wanted.type,
        "queue": wanted.queue,
        "priority": wanted.priority,
        "cron": schedule.text,
        "timezone": schedule.timezone,
        "overlap": wanted.overlap,
        "misfire": wanted.misfire,
    }
    return all(getattr(row, name) == value for name, value in ours.items()) and _hash(row.payload) == _hash(
        checked.payload
    )


def _hash(payload: str) -> str:
    try:
        return canonical_hash(loads(payload.encode()))
    except Refused:  # people's SQL
        return ""
