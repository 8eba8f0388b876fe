"""From wall-clock times to instants: the one place that knows of daylight saving.

A zone is a row of stretches with one offset each; in a stretch a wall-clock time is an instant. Where the clock goes
forward, fixed times of the gap run once, at its end, and intervals have none there; where it goes back, fixed times run
in the first pass only, and intervals in both: by real time nothing is missing and nothing is late.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from jobs.cron import walls, zones
from jobs.cron.fields import LONGEST, BadCron, Expression, read
from jobs.cron.zones import SECOND

FAR = timedelta(hours=25)  # no clock is put back or forward by more
FIRST = datetime(walls.FIRST_YEAR, 1, 2, tzinfo=UTC)
LAST = datetime(walls.LAST_YEAR, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression in a time zone: an endless row of instants, each a whole second, from 1900 on."""

    expression: Expression
    zone: ZoneInfo

    @property
    def text(self) -> str:
        """The expression as written, white space folded."""
        return self.expression.text

    @property
    def timezone(self) -> str:
        """The name of the zone."""
        return self.zone.key

    def next(self, after: datetime) -> datetime:
        """The first instant after `after` (aware), in UTC.

        Raises BadCron when none comes within 50 years, ValueError for a datetime without an offset.
        """
        at = _utc(after)
        instant = self._following(max(at, FIRST)) if at < LAST else None
        if instant is None:
            raise BadCron(_("It does not come within %(years)d years.") % {"years": walls.HORIZON})
        return instant

    def upcoming(self, after: datetime, count: int) -> list[datetime]:
        """The next `count` instants after `after`, in UTC; fewer where no more come. Raises ValueError as `next`."""
        return list(islice(self._each(_utc(after)), max(count, 0)))

    def missed(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The last instants, at most `limit`, that are after `after` and not after `until`: oldest first, in UTC.

        It counts back from `until`, so its cost grows with `limit` and not with the time between. Raises ValueError as
        `next`.
        """
        first, at = max(_utc(after), FIRST), min(_utc(until), LAST)
        found: list[datetime] = []
        while len(found) < limit and at > first:
            instant = self._latest(at)
            if instant is None or instant <= _utc(after):
                break
            found.append(instant)
            at = instant - SECOND
        return found[::-1]

    def count(self, after: datetime, until: datetime) -> int:
        """How many instants are after `after` and not after `until`; exact, at a cost that grows with the days between.

        Raises ValueError as `next`.
        """
        at, end = max(_utc(after), FIRST).replace(microsecond=0), min(_utc(until), LAST).replace(microsecond=0)
        found, start = 0, self._start(at) + SECOND
        while (change := zones.first_change(self.zone, at, end)) is not None:
            old, new = self._around(change)
            found += walls.count(self.expression, start, old)
            if self.expression.interval:
                start = new
            elif walls.count(self.expression, old, new):  # the gap's times run once, at its end
                found, start = found + 1, new + SECOND
            else:
                start = max(old, new)
            at = change
        return found + walls.count(self.expression, start, self._clock(end) + SECOND)

    def _each(self, at: datetime) -> Iterator[datetime]:
        while True:
            try:
                at = self.next(at)
            except BadCron:
                return
            yield at

    def _following(self, after: datetime) -> datetime | None:
        """The first instant after this one."""
        expression, last_year = self.expression, after.year + walls.HORIZON
        at = after.replace(microsecond=0)
        start = self._start(at)
        while (wall := walls.following(expression, start)) is not None and wall.year <= last_year:
            instant = wall.replace(tzinfo=UTC) - zones.offset(self.zone, at)
            change = zones.first_change(self.zone, at, instant)
            if change is None:
                return instant
            old, new = self._around(change)
            if not expression.interval and old <= wall < new:
                return change
            at, start = change, (new if expression.interval else max(old, new)) - SECOND
        return None

    def _latest(self, until: datetime) -> datetime | None:
        """The last instant that is not after this one."""
        expression, first_year = self.expression, until.year - walls.HORIZON
        at = until.replace(microsecond=0)
        while (wall := walls.latest(expression, self._clock(at))) is not None and wall.year >= first_year:
            instant = wall.replace(tzinfo=UTC) - zones.offset(self.zone, at)
            # A fixed time may be one of a second pass, whose stretch begins shortly before it.
            change = zones.last_change(self.zone, instant if expression.interval else instant - FAR, at)
            if change is None:
                return instant
            old, new = self._around(change)
            if wall >= (new if expression.interval else max(old, new)):
                return instant
            if not expression.interval and old <= wall < new:
                return change
            at = change - SECOND
        return None

    def _start(self, at: datetime) -> datetime:
        """The wall-clock time after which to look for what comes after this instant."""
        start = self._clock(at)
        if not self.expression.interval and (back := zones.last_change(self.zone, at - FAR, at)) is not None:
            start = max(start, self._around(back)[0] - SECOND)  # within a second pass: after it
        return start

    def _clock(self, at: datetime) -> datetime:
        """What the zone's clock shows at this instant."""
        return at.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def _around(self, change: datetime) -> tuple[datetime, datetime]:
        """What the zone's clock would show at this change without it, and what it shows."""
        return self._clock(change - SECOND) + SECOND, self._clock(change)


def parse(expression: object, timezone: object) -> Schedule:
    """The schedule of a cron expression in an IANA time zone.

    Raises BadCron, whose `errors` has the field (`cron`, `timezone`, or both) and the reason: something is wrong in one
    of them, or the expression never comes. The same texts give the same schedule, which is kept.
    """
    if isinstance(expression, str) and isinstance(timezone, str) and len(expression) <= LONGEST:
        return _parsed(expression, timezone)
    return _read(expression, timezone)


@lru_cache(maxsize=8000)
def _parsed(expression: str, timezone: str) -> Schedule:
    return _read(expression, timezone)


def _read(expression: object, timezone: object) -> Schedule:
    try:
        parsed = read(expression)
    except BadCron as bad:
        try:
            zones.zone(timezone)
        except BadCron as other:
            bad.errors |= other.errors
        raise
    schedule = Schedule(parsed, zones.zone(timezone))
    # The calendar repeats itself within 28 years, until 2100: what does not come from 2000 on never does.
    if walls.following(schedule.expression, walls.EPOCH) is None:
        raise BadCron(_("It never comes: no date has this day, month and weekday."))
    return schedule


def _utc(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        raise ValueError("an instant needs an offset")
    return instant.astimezone(UTC)
