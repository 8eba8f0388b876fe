"""What the screens of recurring jobs say: when one fires, in words and pictures, and what becomes of what collides."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy, ngettext, pgettext_lazy
from django.utils.translation import gettext as _

from jobs import wording
from jobs.cron import Schedule

DAY = timedelta(days=1)
MOST_TICKS = 24  # more of them are a grey bar: their number says more
LATE = 3.0  # seconds after its instant, while nobody has fired it
TICK_WIDTH = 300  # seconds: the picture of a day is 288 wide
WEEKDAYS = (
    pgettext_lazy("short", "Mon"),
    pgettext_lazy("short", "Tue"),
    pgettext_lazy("short", "Wed"),
    pgettext_lazy("short", "Thu"),
    pgettext_lazy("short", "Fri"),
    pgettext_lazy("short", "Sat"),
    pgettext_lazy("short", "Sun"),
)
OVERLAPS: dict[str, Promise] = {
    "skip": gettext_lazy("Skips this one"),
    "queue": gettext_lazy("Waits for it to finish"),
    "allow": gettext_lazy("Runs alongside"),
}
MISFIRES: dict[str, Promise] = {
    "once": gettext_lazy("Runs once"),
    "skip": gettext_lazy("Skips it"),
    "all": gettext_lazy("Runs all of them (up to 100)"),
}
OVERLAP_SENTENCES: dict[str, Promise] = {
    "skip": gettext_lazy("Does not overlap"),
    "queue": gettext_lazy("Waits for the previous run to finish"),
    "allow": gettext_lazy("Runs alongside the previous run"),
}
MISFIRE_SENTENCES: dict[str, Promise] = {
    "once": gettext_lazy("if its time is missed, runs once"),
    "skip": gettext_lazy("if its time is missed, leaves it out"),
    "all": gettext_lazy("if its times are missed, runs all of them (up to 100)"),
}

SKIPPED: dict[str, Promise] = {
    "overlap": gettext_lazy("left out %(day)s: the previous run was not over"),
    "misfire": gettext_lazy("missed %(day)s: nobody was there to fire it"),
}


def policies(overlap: str, misfire: str) -> str:
    """Both policies in one sentence."""
    return f"{OVERLAP_SENTENCES.get(overlap, overlap)}; {MISFIRE_SENTENCES.get(misfire, misfire)}"


@dataclass(frozen=True, slots=True)
class Tick:
    """An instant in the picture of 24 hours: its place from 0 to 288."""

    x: int
    first: bool


@dataclass(frozen=True, slots=True)
class NextDay:
    """The next 24 hours: how many instants, and their ticks where they are few."""

    count: int
    ticks: list[Tick]

    @property
    def label(self) -> str:
        """What the picture says."""
        said = ngettext("%(n)s run in the next 24 h", "%(n)s runs in the next 24 h", self.count)
        return said % {"n": wording.count(self.count)}

    @property
    def words(self) -> str:
        """Where there is no picture."""
        if not self.count:
            return _("none")
        return ngettext("%(n)s time", "%(n)s times", self.count) % {"n": wording.count(self.count)}


def next_day(schedule: Schedule, now: datetime) -> NextDay:
    """What the next 24 hours bring."""
    count = schedule.count(now, now + DAY)
    within = schedule.upcoming(now, count) if count <= MOST_TICKS else []
    return NextDay(count, [Tick(round((at - now).total_seconds() / TICK_WIDTH), not n) for n, at in enumerate(within)])


def weekday(local: datetime) -> str:
    """The day of the week, short: qui, Thu."""
    return str(WEEKDAYS[local.weekday()])


def date(local: datetime, today: datetime) -> str:
    """The day, and the year where it is another: 15/10, Oct 15."""
    portuguese = (get_language() or "").startswith("pt")
    if local.year != today.year:
        return f"{local:%d/%m/%Y}" if portuguese else f"{local:%Y-%m-%d}"
    return f"{local:%d/%m}" if portuguese else f"{local:%b} {local.day}"


def time(local: datetime) -> str:
    """The minute, with seconds where there are any."""
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


@dataclass(frozen=True, slots=True)
class Coming:
    """An instant to come. `left`: seconds until then where it is less than an hour away, for a running clock; `late`:
    seconds since then, where it should have come already."""

    at: datetime
    left: int | None
    late: int | None
    inside: str
    day: str
    time: str
    stands: str


def coming(at: datetime, now: datetime, zone: tzinfo | None = None) -> Coming:
    """An instant as `zone` (the viewer's by default) has it."""
    local = at.astimezone(zone) if zone else timezone.localtime(at)
    today = now.astimezone(local.tzinfo)
    left = (at - now).total_seconds()
    near = left < wording.HOUR
    day = f"{weekday(local)} {date(local, today)}"
    if near and local.date() == today.date():
        stands = f"{local:%H:%M:%S}"
    elif local.date() == today.date():
        stands = _("today %(time)s") % {"time": time(local)}
    else:
        stands = f"{day} {time(local)}"
    late = int(-left) if left < -LATE else None
    return Coming(at, max(0, int(left)) if near else None, late, until(left), day, time(local), stands)


def until(seconds: float) -> str:
    """How far away something is: em 16 h 57, em 4 dias."""
    whole = max(0, int(seconds))
    if whole < wording.HOUR:
        return _("in %(span)s") % {"span": wording.clock(whole)}
    if whole < wording.DAY:
        return _("in %(span)s") % {"span": f"{whole // 3600} h {whole % 3600 // 60:02}"}
    days = whole // wording.DAY
    return ngettext("in %(n)s day", "in %(n)s days", days) % {"n": wording.number(days)}


def hours(now: datetime, zone: tzinfo) -> Sequence[str]:
    """What stands under the picture of 24 hours, each six hours."""
    return [f"{(now + timedelta(hours=6 * n)).astimezone(zone):%H} h" for n in range(5)]
