"""Time zones of the IANA database: which names there are, and when a zone's clock is put forward or back."""

import errno
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from jobs.cron.fields import BadCron
from jobs.text import clean

SHOWN = 40  # characters of what was written, in a refusal
SECOND = timedelta(seconds=1)
LOOK = timedelta(hours=12)  # no two changes of a zone's offset are nearer
NONE_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
NO_PLACES = frozenset({"localtime", "posixrules", "Factory"})


@cache
def names() -> frozenset[str]:
    """Every zone that a schedule may have."""
    return frozenset(zoneinfo.available_timezones()) - NO_PLACES


def zone(name: object) -> ZoneInfo:
    """The IANA zone of this name. Raises BadCron: an offset, the name of a Windows zone or "Local" is none; OSError
    where the process can open no more files."""
    if isinstance(name, str) and name in names():
        try:
            return ZoneInfo(name)
        except (ValueError, zoneinfo.ZoneInfoNotFoundError):
            pass  # a damaged file of the database
        except OSError as error:  # one that can't be read
            if error.errno in NONE_LEFT:
                raise
    reason = _("Expected a time zone of the IANA database, such as America/Sao_Paulo")
    shown = "".join(letter for letter in clean(name or "", SHOWN) if letter.isprintable())
    if shown:
        reason += "; " + _("got “%(text)s”") % {"text": shown}
    raise BadCron(f"{reason}.", field="timezone")


def offset(where: ZoneInfo, instant: datetime) -> timedelta:
    """How far the zone's clock is ahead of UTC at this instant."""
    return instant.astimezone(where).utcoffset() or timedelta(0)


@lru_cache(maxsize=8000)
def _changes(where: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """The instants of a year (UTC) at which the zone's offset changes."""
    found = []
    left, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    before = offset(where, left)
    while left < end:
        right = left + LOOK
        after = offset(where, right)
        if before != after:
            low, high = left, right
            while high - low > SECOND:
                middle = low + timedelta(seconds=(high - low) // SECOND // 2)
                if offset(where, middle) == before:
                    low = middle
                else:
                    high = middle
            found.append(high)
        left, before = right, after
    return tuple(found)


def first_change(where: ZoneInfo, after: datetime, until: datetime) -> datetime | None:
    """The first change of the offset after `after`, not later than `until`."""
    for year in range(after.year, until.year + 1):
        for change in _changes(where, year):
            if after < change <= until:
                return change
    return None


def last_change(where: ZoneInfo, after: datetime, until: datetime) -> datetime | None:
    """The last change of the offset after `after`, not later than `until`."""
    for year in range(until.year, after.year - 1, -1):
        for change in reversed(_changes(where, year)):
            if after < change <= until:
                return change
    return None
