"""A schedule in words, in the active language: what the screens and the API say beside an expression."""

from jobs.cron import dates, times
from jobs.cron.schedule import Schedule


def describe(schedule: Schedule, *, seconds: bool = False) -> str:
    """When it runs, such as "Every day at 03:00" or "At 07:30, Monday to Friday"; of its zone nothing is said.

    Times are 07:30 where they are on the minute; with `seconds` they are always 07:30:00.
    """
    days = dates.spoken(schedule.expression)
    daily = schedule.expression.every_day
    return ", ".join([times.spoken(schedule.expression, seconds=seconds, daily=daily), *days])
