"""What a recurring job may be: its fields as somebody asks for them, each checked, all that is wrong told at once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from jobs.batch import Batch
from jobs.bounds import RECURRING_PATTERN
from jobs.cron import BadCron, Schedule, parse
from jobs.errors import Invalid, Refused, Text, refused_fields
from jobs.requests import JobRequest
from jobs.transitions.insert import NewJob

OVERLAPS = ("skip", "allow", "queue")
MISFIRES = ("once", "skip", "all")
_NAME = re.compile(RECURRING_PATTERN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A recurring job as it should be. `queue` and `priority` None: the type's own.

    `overlap`: what becomes of an instant at which an earlier job is not final yet: "skip", "allow", or "queue" (it
    waits for its turn). `misfire`: what runs of instants that nobody was there to fire: "once" (the latest), "skip"
    (none), or "all" (each, the last 100 at most).
    """

    name: str
    type: str
    cron: str
    timezone: str = "UTC"
    payload: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    priority: int | None = None
    overlap: str = "skip"
    misfire: str = "once"


@dataclass(frozen=True, slots=True)
class Checked:
    """One that is right: `wanted`, its schedule, and its payload as JSON text."""

    wanted: Wanted
    schedule: Schedule
    payload: str


def check(wanted: Wanted) -> Checked:
    """Raises Invalid, UnknownType or PayloadTooLarge with `errors` by field; writes nothing."""
    errors: dict[str, list[Text]] = {}
    kinds: set[type[Refused]] = set()

    def note(refusal: Refused) -> None:
        for name, messages in refusal.errors.items():
            errors.setdefault(name, []).extend(messages)
        kinds.add(type(refusal) if not isinstance(refusal, BadCron) else Invalid)

    def wrong(name: str, text: str) -> None:
        note(Invalid(text, errors={name: [text]}))

    if not isinstance(wanted.name, str) or not _NAME.fullmatch(wanted.name):
        wrong("name", _("Expected 1 to 100 characters of a-z, 0-9, '.', '_' and '-'."))
    schedule, job = None, None
    try:
        schedule = parse(wanted.cron, wanted.timezone)
    except BadCron as refusal:
        note(refusal)
    try:
        job = job_of(wanted.type, wanted.payload, queue=wanted.queue, priority=wanted.priority)
    except Refused as refusal:
        note(refusal)
    for name, value, known in (("overlap", wanted.overlap, OVERLAPS), ("misfire", wanted.misfire, MISFIRES)):
        if value not in known:
            wrong(name, _("Expected one of %(expected)s.") % {"expected": ", ".join(known)})
    if schedule is None or job is None or errors:
        raise refused_fields(errors, kinds.pop() if len(kinds) == 1 else Invalid)
    return Checked(wanted, schedule, job.payload)


def job_of(
    type_name: str,
    payload: Any,
    *,
    queue: str | None,
    priority: int | None,
    owner: str | None = None,
    origin: str | None = None,
    unknown: str | None = None,
) -> NewJob:
    """The job that a recurring one makes, checked as every other one. Raises as `check` does.

    `unknown`: "accept" takes a type without a handler here, whose payload nobody can check.
    """
    batch = Batch(owner, "recurring", unknown=unknown)
    batch.add(JobRequest(type=type_name, payload=payload, queue=queue, priority=priority, origin=origin))
    batch.raise_problems()
    return batch.rows({})[0]
