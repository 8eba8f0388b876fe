"""The list of recurring jobs as its page shows it, worked out once for the page and for its live part."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from dashboard.reading import Reading, instant_of
from dashboard.schedulewords import SKIPPED, Coming, NextDay, coming, next_day, policies
from dashboard.zone import city, zone_of
from jobs import queries, wording
from jobs.cron import BadCron, describe, parse
from jobs.queries import schedulelist
from jobs.queries.schedulelist import PastRun, ScheduleCursor, ScheduleFilter, ScheduleRow
from jobs.schedules.declared import UNNAMED

MOST_OPEN = 10
AHEAD = 5
# As they stand in an address -> as `jobs.queries` names them, and in words.
SHOWN = {"": "", "ativas": "enabled", "falha": "failing"}
SHOWN_WORDS: dict[str, Promise] = {
    "": pgettext_lazy("schedules", "All"),
    "ativas": pgettext_lazy("schedules", "Enabled"),
    "falha": gettext_lazy("Failing"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for."""

    filter: ScheduleFilter
    values: dict[str, str]
    cursor: ScheduleCursor | None = None

    def query(self, **changes: str | None) -> str:
        """The query string with some parameters changed (None: without); the page is not kept."""
        kept = {**self.values, **changes}
        return urlencode([(name, kept[name]) for name in ("mostrar", "busca", "cursor") if kept.get(name)])


def parse_asked(data: QueryDict) -> Asked:
    """The filter that a query string asks for. Raises nothing: what makes no sense asks nothing."""
    read = Reading(data)
    wanted = ScheduleFilter(read.text("busca"), read.one_of("mostrar", SHOWN) or "")
    try:
        cursor = ScheduleCursor.parse(data.get("cursor", ""))
    except ValueError:
        cursor = None
    return Asked(wanted, read.values, cursor)


@dataclass(frozen=True, slots=True)
class Detail:
    """What an open row shows."""

    ahead: list[Coming]
    runs: list[PastRun]
    runs_words: str
    policies: str
    skipped: str
    runs_query: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row: `words` of the schedule ("" where it can't be read), its zone's city, what comes and what was; `skipped`:
    why nothing ran at the last instant."""

    row: ScheduleRow
    words: str
    city: str
    day: NextDay | None
    next: Coming | None
    problem: str
    disabled_by: str
    skipped: str
    detail: Detail | None

    @property
    def on(self) -> bool:
        """Whether it fires by itself."""
        return self.row.enabled and not self.problem


def line(row: ScheduleRow, now: datetime, *, opened: bool = False) -> Line:
    """A row as the list shows it; one that can't be read says why, and stops no other."""
    words, problem, schedule = "", row.error or "", None
    try:
        schedule = parse(row.cron, row.timezone)
        words = describe(schedule)
    except BadCron as error:  # said anew: what is stored was said in its worker's language
        problem = str(error.detail)
    fires = row.enabled and not problem and schedule is not None
    zone = zone_of(row.timezone)
    return Line(
        row,
        words,
        city(zone) if zone else row.timezone,
        next_day(schedule, now) if fires and schedule else None,
        coming(row.due, now) if row.due and fires else None,
        problem,
        _who(row),
        _skipped(row),
        detail(row, now) if opened else None,
    )


def _who(row: ScheduleRow) -> str:
    """Who has disabled it, in words."""
    if not row.disabled_by or row.undeclared:
        return ""
    return _("the configuration") if row.disabled_by == UNNAMED else wording.actor_name(row.disabled_by)


def _skipped(row: ScheduleRow) -> str:
    """Why nothing ran at its last instant; "" where something did."""
    at, why = row.last_skipped_at, SKIPPED.get(row.last_skipped_why or "")
    if at is None or why is None or (row.last_run_at is not None and row.last_run_at > at):
        return ""
    return str(why) % {"day": wording.day(at)}


def detail(row: ScheduleRow, now: datetime) -> Detail:
    """What an open row shows of the schedule."""
    try:
        ahead = parse(row.cron, row.timezone).upcoming(now, AHEAD) if not row.error else []
    except BadCron:
        ahead = []
    runs = schedulelist.last_runs(row.id)
    skipped = ""
    if row.last_skipped_at is not None:
        said = ngettext("%(n)s run left out, the last %(day)s", "%(n)s runs left out, the last %(day)s", row.skipped)
        skipped = said % {"n": wording.count(row.skipped), "day": wording.day(row.last_skipped_at)}
    return Detail(
        [coming(at, now) for at in ahead],
        runs,
        _outcomes(runs),
        policies(row.overlap, row.misfire),
        skipped,
        urlencode({"recorrente": row.id}),
    )


def _outcomes(runs: Sequence[PastRun]) -> str:
    """What the marks of the last runs say."""
    failed = sum(run.state == "Failed" for run in runs)
    if not runs:
        return _("none yet")
    if failed:
        return ngettext("%(n)d of %(all)d failed", "%(n)d of %(all)d failed", failed) % {"n": failed, "all": len(runs)}
    if all(run.state == "Succeeded" for run in runs):
        return _("all succeeded")
    return _("none failed")


def opened(data: QueryDict) -> set[UUID]:
    """The rows that the page names as open."""
    return set(ids(",".join(data.getlist("aberta")))[:MOST_OPEN])


def ids(text: str) -> list[UUID]:
    """Ids separated by commas; what is none is left out."""
    found = []
    for part in text.split(",")[: schedulelist.MOST_IDS]:
        try:
            found.append(UUID(part))
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def since(data: QueryDict) -> datetime | None:
    """The instant of the page's data, as its live part says it."""
    try:
        return instant_of(data.get("desde", ""))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the ways to narrow the list."""

    word: str
    query: str
    here: bool
    count: str


def context(asked: Asked, open_rows: set[UUID]) -> dict[str, Any]:
    """The whole page."""
    as_of = queries.now()
    found = schedulelist.schedule_list(asked.filter, asked.cursor)
    lines = [line(row, as_of, opened=row.id in open_rows) for row in found.rows]
    return {
        **_frame(asked),
        "lines": lines,
        "part": _part(asked, [row.id for row in found.rows], as_of),
        "fresh": 0,
        "first": asked.query() if asked.cursor else None,
        "following": asked.query(cursor=str(found.after)) if found.after else None,
    }


def part(asked: Asked, shown: list[UUID], open_rows: set[UUID], as_of: datetime | None) -> dict[str, Any]:
    """The list again: these rows in this order, as they are now; of new ones only how many there are."""
    now = queries.now()
    lines = [line(row, now, opened=row.id in open_rows) for row in schedulelist.schedule_rows(shown)]
    fresh = schedulelist.newer_schedules(asked.filter, as_of, shown) if as_of else 0
    return {**_frame(asked), "lines": lines, "part": _part(asked, shown, as_of or now), "fresh": fresh}


def _part(asked: Asked, shown: list[UUID], as_of: datetime) -> str:
    own = urlencode({"ids": ",".join(id_.hex for id_ in shown), "desde": as_of.isoformat()}, safe=",")
    return f"{reverse('recorrentes-lista')}?{'&'.join(filter(None, (asked.query(), own)))}"


def _frame(asked: Asked) -> dict[str, Any]:
    counts = schedulelist.schedule_counts()
    numbers = {"": counts.total, "ativas": counts.enabled, "falha": counts.failing}
    here = asked.values.get("mostrar", "")
    return {
        "screen": "recorrentes",
        "asked": asked,
        "counts": counts,
        "choices": [
            Choice(str(word), asked.query(mostrar=name or None), name == here, wording.count(numbers[name]))
            for name, word in SHOWN_WORDS.items()
        ],
        "none_at_all": counts.total == 0,
    }
