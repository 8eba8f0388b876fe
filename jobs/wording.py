"""Numbers, spans, ages and people in words, as people read them; by the language of the request."""

from datetime import UTC, datetime

from django.utils import formats, timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy, ngettext, pgettext
from django.utils.translation import gettext as _

MINUTE, HOUR, DAY = 60, 3600, 86400
NOTHING = "–"
# Who acted, where the engine wrote a word of its own.
ACTORS: dict[str, Promise] = {
    "key": gettext_lazy("the access key"),
    "session": gettext_lazy("the dashboard"),
    "open": gettext_lazy("this machine, without a key"),
}


def number(value: float, decimals: int = 0) -> str:
    """With the language's separators: 47.112 or 2,8."""
    rounded = f"{value:.{decimals}f}"  # Django's formatting cuts what it does not show
    return formats.number_format(rounded, decimals, use_l10n=True, force_grouping=True)


def count(value: float | None, estimated: bool = False) -> str:
    """A count in little room: 47.112, then 1,24 mi; an estimate as ~47 mil."""
    if value is None:
        return NOTHING
    whole = int(value)
    if whole >= 1_000_000_000:
        text = pgettext("count", "%s B") % number(whole / 1_000_000_000, 2)
    elif whole >= 1_000_000:
        text = pgettext("count", "%s M") % number(whole / 1_000_000, 2)
    elif estimated and whole >= 1000:
        text = pgettext("count", "%s K") % number(round(whole / 1000))
    else:
        text = number(whole)
    return f"~{text}" if estimated else text


def clock(seconds: float | None) -> str:
    """A span as people read a stopwatch: 0:07, 12:40, 3:02:11."""
    if seconds is None:
        return NOTHING
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def span(seconds: float | None) -> str:
    """How long something took: 45 ms, 2,1 s, 6 min 42 s, 3 h 05 min, 2 d 4 h."""
    if seconds is None:
        return NOTHING
    seconds = max(0.0, float(seconds))
    if seconds < 0.9995:
        return f"{number(round(seconds * 1000))} ms"
    if seconds < 59.95:
        return f"{number(seconds, 1)} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // 60} min {whole % 60:02} s" if whole % 60 else f"{whole // 60} min"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // 60:02} min"
    return f"{number(whole // DAY)} d {whole % DAY // HOUR} h"


def limit(seconds: float | None) -> str:
    """A length of time that somebody set, not one that was measured: 30 s, 2,5 s, 10 min, 1 h, 2 d."""
    if seconds is not None and 1 <= seconds < 60 and seconds == int(seconds):
        return f"{number(seconds)} s"
    for unit, sign in ((DAY, "d"), (HOUR, "h")):
        if seconds is not None and seconds >= unit and seconds % unit == 0:
            return f"{number(seconds // unit)} {sign}"
    return span(seconds)


def size(octets: float | None) -> str:
    """Bytes: 812 B, 4,0 KB, 48,1 MB."""
    if octets is None:
        return NOTHING
    value = float(octets)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 999.95:
            return f"{number(value, 0 if unit == 'B' else 1)} {unit}"
        value /= 1000
    return f"{number(value, 1)} TB"


def ago(seconds: float, instant: datetime | None = None) -> str:
    """An age: há 2 s, há 3 min, há 5 h; from a day on the day and the minute, when the instant is known."""
    whole = max(0, int(seconds))
    if whole < 1:
        return _("just now")
    if whole < MINUTE:
        return _("%(n)d s ago") % {"n": whole}
    if whole < HOUR:
        return _("%(n)d min ago") % {"n": whole // MINUTE}
    if whole < DAY:
        return _("%(n)d h ago") % {"n": whole // HOUR}
    if instant is not None:
        return day(instant)
    days = whole // DAY
    return ngettext("%(n)d day ago", "%(n)d days ago", days) % {"n": days}


def day(instant: datetime) -> str:
    """The day in words where it is near, and the minute: hoje 14:09, ontem 19:12, 12/10 08:30, 12/10/2025 08:30."""
    local = timezone.localtime(instant)
    today = timezone.localtime().date()
    at = f"{local:%H:%M}"
    days = (today - local.date()).days
    if days == 0:
        return _("today %(time)s") % {"time": at}
    if days == 1:
        return _("yesterday %(time)s") % {"time": at}
    portuguese = (get_language() or "").startswith("pt")
    if local.year == today.year:
        return f"{local:%d/%m} {at}" if portuguese else f"{local:%b} {local.day} {at}"
    return f"{local:%d/%m/%Y} {at}" if portuguese else f"{local:%Y-%m-%d} {at}"


def exact(instant: datetime) -> str:
    """The instant to the second in the viewer's zone, and in UTC: for titles."""
    local = timezone.localtime(instant)
    return f"{stamp(local)} {local:%Z} · {instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def stamp(instant: datetime) -> str:
    """Day and second in the viewer's zone: 14/10/2026 14:24:31."""
    local = timezone.localtime(instant)
    portuguese = (get_language() or "").startswith("pt")
    return f"{local:%d/%m/%Y %H:%M:%S}" if portuguese else f"{local:%Y-%m-%d %H:%M:%S}"


def actor_name(actor: str | None) -> str:
    """Who acted, in words."""
    if not actor:
        return ""
    return str(ACTORS.get(actor) or actor.removeprefix("user:"))
