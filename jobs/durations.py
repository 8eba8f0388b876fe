"""Durations as people write them: "60s", "10 min", "500ms", "7d", or a number of seconds."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

from jobs.speech import _

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
LONGEST = 100 * 366 * 86400.0  # seconds


def parse_duration(value: Any) -> float:
    """Seconds named by `value`: a number of seconds, a timedelta, or text such as "60s" or "10 min".

    Raises ValueError with the accepted forms when it is none of these, is negative or exceeds a century.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # Compared as it came: an int too large for a float must be refused, not overflow.
        seconds = float(value) if -1 <= value <= LONGEST else -1.0
    else:
        match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
        unit = match.group(2).lower() or "s" if match else ""
        if match is None or unit not in _UNITS:
            raise ValueError(_('expected a duration such as "60s", "10 min", "500ms", "7d" or a number of seconds'))
        seconds = float(match.group(1)) * _UNITS[unit]
    if not 0 <= seconds <= LONGEST:
        raise ValueError(_("expected a duration between 0 and 100 years"))
    return seconds


Duration = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds as a float, read from any form that `parse_duration` takes."""
