"""The times of the day in words: "Every 5 minutes", "At 06:15, 12:15 and 18:15", "Every hour, from 08:00 to 18:00"."""

from collections.abc import Sequence
from itertools import pairwise

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, npgettext

from jobs.cron.fields import Expression
from jobs.cron.phrases import at, between, clock, listed, numbers, steps

MOST_TIMES = 6  # that are named one by one
MOST_RUNS = 3  # "from … to …" in one sentence
SHORTEST_RUN = 4  # times that are called a run
MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds


def spoken(expression: Expression, *, seconds: bool, daily: bool) -> str:
    """When on its days it runs, as the start of a sentence; `daily`: nothing will be said of days, so this says it."""
    second, minute, hour = (sorted(field.values) for field in (expression.second, expression.minute, expression.hour))
    minutes = [60 * h + m for h in hour for m in minute]  # of the day
    precise = seconds or second != [0]
    nightly = expression.every_day and expression.month.whole  # the night is of one piece where both its days run
    if regular := _regular(second, minutes, precise, nightly):
        return regular
    if len(second) * len(minutes) <= MOST_TIMES:
        times = [60 * m + s for m in minutes for s in second]
        if len(times) == 1:
            return at(times[0], seconds=precise, daily=daily)
        return _("At %(times)s") % {"times": listed([clock(time, seconds=precise) for time in times])}
    return _field_by_field(second, minute, hour)


def every(seconds: int) -> str:
    """Such as "Every minute", "Every 5 minutes", "Every 2 hours"."""
    if seconds % HOUR == 0:
        count = seconds // HOUR
        return npgettext("how often", "Every hour", "Every %(count)d hours", count) % {"count": count}
    if seconds % MINUTE == 0:
        count = seconds // MINUTE
        return npgettext("how often", "Every minute", "Every %(count)d minutes", count) % {"count": count}
    return npgettext("how often", "Every second", "Every %(count)d seconds", seconds) % {"count": seconds}


def _regular(second: Sequence[int], minutes: Sequence[int], precise: bool, nightly: bool) -> str:
    """Where all is a row of equal steps, or a few such rows in a day; else ""."""
    if len(second) > 1:
        return _regular_seconds(second, minutes, nightly)
    if len(minutes) < SHORTEST_RUN:
        return ""
    gap = min(right - left for left, right in pairwise(minutes))
    if gap > 60 and gap % 60:
        return ""
    step, begin = gap * MINUTE, minutes[0]
    if len(minutes) * step == DAY and (begin == 0 or gap == 60):
        parts = [every(step)]
        if begin:
            parts.append(_at_minutes([begin]))
        if second != [0]:
            parts.append(_at_second(second[0]))
        return ", ".join(parts)
    runs = _runs(minutes, gap, nightly)
    few = gap > 60 and len(minutes) <= MOST_TIMES  # better named one by one
    if few or len(runs) > MOST_RUNS or (len(runs) > 1 and (len(minutes) <= MOST_TIMES or min(map(len, runs)) == 1)):
        return ""
    return _in_runs(step, [(60 * run[0] + second[0], 60 * run[-1] + second[0]) for run in runs], precise)


def _regular_seconds(second: Sequence[int], minutes: Sequence[int], nightly: bool) -> str:
    step, runs = steps(second), _runs(minutes, 1, nightly)
    around = len(second) * step == MINUTE  # it goes on in the next minute with the same step
    if not step or len(runs) > MOST_RUNS or not (around or len(minutes) == 1):
        return ""
    if around and second[0] == 0 and len(minutes) * MINUTE == DAY:
        return every(step)
    if len(second) * len(minutes) < SHORTEST_RUN:
        return ""
    return _in_runs(step, [(60 * run[0] + second[0], 60 * run[-1] + second[-1]) for run in runs], True)


def _runs(minutes: Sequence[int], gap: int, nightly: bool) -> list[list[int]]:
    """Sorted minutes of the day in rows of equal steps; `nightly`: a row may go on after midnight."""
    runs: list[list[int]] = []
    for minute in minutes:
        if runs and minute == runs[-1][-1] + gap:
            runs[-1].append(minute)
        else:
            runs.append([minute])
    if nightly and len(runs) > 1 and runs[-1][-1] + gap == runs[0][0] + 24 * 60:
        runs = [*runs[1:-1], runs[-1] + runs[0]]
    return runs


def _in_runs(step: int, ends: Sequence[tuple[int, int]], precise: bool) -> str:
    return f"{every(step)}, {listed([between(first, last, seconds=precise) for first, last in ends])}"


def _field_by_field(second: Sequence[int], minute: Sequence[int], hour: Sequence[int]) -> str:
    """What is left: each field that leaves something out is named."""
    if len(second) > 1:
        text = _seconds(second)
        if len(minute) < 60:
            within = ngettext("in minute %(numbers)s", "in minutes %(numbers)s", len(minute))
            return f"{text}, {within % {'numbers': numbers(minute)}} {_of_hours(hour)}"
        return text if len(hour) == 24 else f"{text}, {_in_hours(hour)}"
    step = steps(minute)
    around = len(minute) * step == 60
    if around and minute[0] == 0:
        text = f"{every(step * MINUTE)}, {_in_hours(hour)}"
    elif step and len(minute) >= SHORTEST_RUN:
        span = _("from minute %(first)d to %(last)d") % {"first": minute[0], "last": minute[-1]}
        text = f"{every(step * MINUTE)}, {span} {_of_hours(hour)}"
    elif len(hour) == 24:
        text = f"{every(HOUR)}, {_at_minutes(minute)}"
    else:
        start = ngettext("At minute %(numbers)s", "At minutes %(numbers)s", len(minute))
        text = f"{start % {'numbers': numbers(minute)}} {_of_hours(hour)}"
    return text if second[0] == 0 else f"{text}, {_at_second(second[0])}"


def _seconds(second: Sequence[int]) -> str:
    step = steps(second)
    if len(second) * step == 60 and second[0] == 0:
        return every(step)
    if step and len(second) >= SHORTEST_RUN:
        span = _("from second %(first)d to %(last)d of each minute") % {"first": second[0], "last": second[-1]}
        return f"{every(step)}, {span}"
    return _("At seconds %(numbers)s of each minute") % {"numbers": numbers(second)}


def _at_minutes(minute: Sequence[int]) -> str:
    text = ngettext("at minute %(numbers)s", "at minutes %(numbers)s", len(minute))
    return text % {"numbers": numbers(minute)}


def _at_second(second: int) -> str:
    return _("at second %(second)d") % {"second": second}


def _in_hours(hour: Sequence[int]) -> str:
    return ngettext("in hour %(numbers)s", "in hours %(numbers)s", len(hour)) % {"numbers": numbers(hour)}


def _of_hours(hour: Sequence[int]) -> str:
    if len(hour) == 24:
        return _("of each hour")
    return ngettext("of hour %(numbers)s", "of hours %(numbers)s", len(hour)) % {"numbers": numbers(hour)}
