"""Cron: when a recurring job is due. Pure: no clock and no database.

`parse(expression, timezone)` gives a `Schedule` or raises `BadCron`, an `Invalid` whose `errors` name the field (`cron`
or `timezone`) and the reason. `Schedule.next`, `upcoming` and `missed` give instants in UTC, `count` says how many;
`describe` says it in words, in the active language. The manual's chapter on scheduling tells what the fields mean.
"""

from jobs.cron.fields import BadCron
from jobs.cron.schedule import Schedule, parse
from jobs.cron.words import describe
from jobs.cron.zones import names as zone_names
from jobs.cron.zones import zone

__all__ = ["BadCron", "Schedule", "describe", "parse", "zone", "zone_names"]
