"""Rates as people write them: "100/m", "5/s", "1000/h", "20/30s": so many starts in any window of that length."""

import re
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from jobs.bounds import STARTS
from jobs.durations import parse_duration
from jobs.speech import _

_PATTERN = re.compile(r"\s*([0-9]{1,7})\s*/\s*(.{1,20}?)\s*", re.ASCII)
PARTS = 50  # of a window: starts are counted by these
WINDOWS = (0.1, 7 * 86400.0)  # seconds
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


class RateLimit(NamedTuple):
    """At most `allowed` starts in any `window` (seconds)."""

    allowed: int
    window: float

    def __str__(self) -> str:
        for unit, seconds in _UNITS.items():
            if self.window == seconds:
                return f"{self.allowed}/{unit}"
        for unit, seconds in _UNITS.items():
            if self.window % seconds == 0:
                return f"{self.allowed}/{self.window / seconds:g}{unit}"
        return f"{self.allowed}/{self.window:g}s"


class Limits(NamedTuple):
    """The limits of a type in the whole cluster: how many run at once, how many start in a window. None: no limit."""

    max_running: int | None = None
    rate: RateLimit | None = None


def parse_rate(value: Any) -> RateLimit:
    """The rate named by `value`: a RateLimit, or text such as "100/m" or "20/30s".

    Raises ValueError with the accepted forms, or with the bounds of one that is too large or too small.
    """
    if isinstance(value, RateLimit):
        value = str(value)
    match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(_('expected a rate such as "100/m", "5/s", "1000/h" or "20/30s"'))
    allowed, span = match.groups()
    try:
        window = parse_duration(f"1{span}" if span[:1].isalpha() else span)
    except ValueError:
        raise ValueError(_('expected a rate such as "100/m", "5/s", "1000/h" or "20/30s"')) from None
    if not STARTS[0] <= int(allowed) <= STARTS[1]:
        raise ValueError(_("expected 1 to 1000000 starts"))
    if not WINDOWS[0] <= window <= WINDOWS[1]:
        raise ValueError(_("expected a window of 0.1 seconds to 7 days"))
    return RateLimit(int(allowed), window)


Rate = Annotated[RateLimit, BeforeValidator(parse_rate)]
"""A RateLimit, read from any form that `parse_rate` takes."""
