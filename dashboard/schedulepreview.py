"""What would come of a recurring job's form: its schedule in words and in a picture, and who else runs at that time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from dashboard import reads
from dashboard.schedulewords import Coming, NextDay, coming, hours, next_day
from dashboard.zone import city, label, zone_of
from jobs import queries
from jobs.cron import BadCron, Schedule, describe, parse
from jobs.cron.fields import ALIASES, KINDS
from jobs.queries import schedulelist
from jobs.registry import catalogue, policy

AHEAD = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """One of the six parts of an expression: its text, its name, whether it is the wrong one."""

    text: str
    label: str
    bad: bool


def cells(cron: str, bad: str = "") -> list[Cell]:
    """The parts of what was typed, beside their names; an alias is shown as what it stands for."""
    plain = ALIASES.get(cron.strip().lower(), cron).split()
    parts = ["0", *plain] if len(plain) == 5 else plain
    shown = [*parts[:6], *[""] * (6 - len(parts))]
    return [Cell(text[:12], str(kind.label), kind.name == bad) for text, kind in zip(shown, KINDS, strict=True)]


@dataclass(frozen=True, slots=True)
class Preview:
    """What would come of the form: `words` "" and nothing else where its schedule is none yet."""

    cells: list[Cell]
    words: str = ""
    zone: str = ""
    day: NextDay | None = None
    hours: Sequence[str] = ()
    here: str = ""
    there: str = ""
    ahead: Sequence[tuple[Coming, Coming]] = ()
    same: int = 0
    queue: str = ""
    slots: int | None = None
    paused: bool = False


def preview(values: Mapping[str, str], id_: UUID | None) -> Preview:
    """What the schedule of a form with these values would do; `id_`: whose form it is, None for a new one."""
    found = zone_of(values["timezone"].strip())
    named = label(found) if found else ""
    try:
        schedule = parse(values["cron"], values["timezone"].strip())
    except BadCron as error:
        return Preview(cells(values["cron"], error.part), zone=named)
    return _told(schedule, queries.now(), values, id_, named)


def _told(schedule: Schedule, now: datetime, values: Mapping[str, str], id_: UUID | None, named: str) -> Preview:
    instants = schedule.upcoming(now, AHEAD)
    mine = timezone.get_current_timezone()
    queue = values["queue"].strip() or _queue_of(values["type"].strip())
    use = next((depth for depth in reads.depths() if depth.queue == queue), None)
    return Preview(
        cells(values["cron"]),
        describe(schedule, seconds=True),
        named,
        next_day(schedule, now),
        hours(now, mine),
        city(mine),
        "" if schedule.timezone == timezone.get_current_timezone_name() else city(schedule.zone),
        [(coming(at, now, schedule.zone), coming(at, now)) for at in instants],
        schedulelist.same_minute(instants[0], id_) if instants else 0,
        queue,
        use.capacity if use is not None else 0,
        use is not None and use.paused is not None,
    )


def _queue_of(type_: str) -> str:
    found = catalogue.get(type_) if type_ else None
    return policy(found).queue if found is not None else ""
