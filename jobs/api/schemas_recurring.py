"""Recurring jobs: what is asked for, and how they are shown."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.utils.translation import gettext_noop
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StringConstraints

from jobs import bounds
from jobs.api.schemas_in import PAGE_SIZE, Body, Instant, Key, OwnPriority, OwnQueue, Text, TypeName, storable
from jobs.cron.fields import LONGEST
from jobs.states import State

ZONE_LENGTH = 100
NEXT_RUNS, LAST_RUNS, PREVIEWED = 5, 10, 100
CURSOR = r"^([0-9a-f]{2})+$"

Overlap = Literal["skip", "allow", "queue"]
Misfire = Literal["once", "skip", "all"]
Cron = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST),
    AfterValidator(storable),
    Field(description=gettext_noop("Five fields (minute, hour, day, month, weekday), or six with seconds first.")),
]
Zone = Annotated[
    str,
    StringConstraints(min_length=1, max_length=ZONE_LENGTH),
    AfterValidator(storable),
    Field(description=gettext_noop("Name of a time zone of the IANA database.")),
]


class RecurringIn(Body):
    """A recurring job; the one of this name becomes as it says."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "name": "daily-report",
                    "type": "report.generate",
                    "cron": "30 7 * * mon-fri",
                    "timezone": "America/Sao_Paulo",
                }
            ]
        },
    )

    name: Annotated[
        str, Field(pattern=bounds.RECURRING_PATTERN, description=gettext_noop("By which it is found and changed."))
    ]
    type: TypeName
    cron: Cron
    timezone: Zone = "UTC"
    payload: Annotated[dict[str, Any], Field(description=gettext_noop("What each of its jobs gets."))] = {}
    queue: OwnQueue = None
    priority: OwnPriority = None
    overlap: Annotated[
        Overlap,
        Field(
            description=gettext_noop(
                "While an earlier job of it is not final: skip leaves the instant out, queue lets the new job wait for "
                "its turn, allow runs both."
            )
        ),
    ] = "skip"
    misfire: Annotated[
        Misfire,
        Field(
            description=gettext_noop(
                "Of instants that were missed, once runs the latest, skip none, all each (the last 100 at most)."
            )
        ),
    ] = "once"
    enabled: Annotated[
        StrictBool | None,
        Field(description=gettext_noop("Whether it fires; left out, it stays as it is, and a new one does.")),
    ] = None


class RecurringQuery(BaseModel):
    """Which recurring jobs, which page."""

    search: Annotated[Key | None, Field(description=gettext_noop("Part of a name or type."))] = None
    shown: Annotated[
        Literal["enabled", "failing"] | None,
        Field(description=gettext_noop("Only those that are enabled, or whose last run failed or that can't fire.")),
    ] = None
    cursor: Annotated[
        Text | None, Field(pattern=CURSOR, description=gettext_noop("next_cursor of the page before."))
    ] = None
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE, description=gettext_noop("Recurring jobs per page."))] = 50


class PreviewQuery(BaseModel):
    """A schedule that is not saved, and how many of its instants."""

    cron: Cron
    timezone: Zone = "UTC"
    from_: Annotated[
        Instant | None,
        Field(alias="from", description=gettext_noop("The instants after this one; left out, after now.")),
    ] = None
    count: Annotated[int, Field(ge=1, le=PREVIEWED, description=gettext_noop("How many instants."))] = NEXT_RUNS


class PreviewOut(BaseModel):
    """What a schedule means, in words and in instants; fewer than asked for where there are no more."""

    cron: str
    timezone: str
    words: Annotated[str, Field(description=gettext_noop("When it runs, in the language of Accept-Language."))]
    instants: list[datetime]


class RunOut(BaseModel):
    """A job of a recurring one that has ended."""

    model_config = ConfigDict(from_attributes=True)

    job_id: UUID
    state: State
    fired_for: Annotated[datetime, Field(description=gettext_noop("The instant of the schedule that it ran for."))]
    started_at: datetime | None
    finished_at: datetime | None
    seconds: Annotated[float | None, Field(description=gettext_noop("How long its last execution took."))]


class RecurringOut(BaseModel):
    """A recurring job, as lists show it."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    name: str
    type: str
    queue: str | None
    priority: int | None
    cron: str
    timezone: str
    words: Annotated[str | None, Field(description=gettext_noop("When it runs, in the language of Accept-Language."))]
    overlap: str
    misfire: str
    enabled: bool
    state: Annotated[
        Literal["enabled", "disabled", "error"],
        Field(description=gettext_noop("error: it can't fire until somebody edits it; error says why.")),
    ]
    error: str | None
    disabled_by: Annotated[
        str | None,
        Field(description=gettext_noop("Who disabled it; configuration: its file does not declare it any more.")),
    ]
    source: Annotated[
        str, Field(description=gettext_noop("declared: it follows the configuration; manual: it was made by hand."))
    ]
    owner: str | None
    next_run_at: datetime | None
    last_run_at: Annotated[datetime | None, Field(description=gettext_noop("The last instant that it fired for."))]
    times_a_day: Annotated[int | None, Field(description=gettext_noop("How often it runs in the next 24 hours."))]
    active: Annotated[int, Field(description=gettext_noop("Jobs of it that are not final, counted up to 1000."))]
    last: Annotated[RunOut | None, Field(description=gettext_noop("The last one of its jobs that has ended."))]
    skipped: Annotated[int, Field(description=gettext_noop("Instants that were left out."))]
    last_skipped_at: datetime | None
    last_skipped_why: str | None
    created_at: datetime
    updated_at: Annotated[datetime, Field(description=gettext_noop("When somebody last changed it."))]


class RecurringDetailOut(RecurringOut):
    """A recurring job with everything that is known of it."""

    payload: Any
    next_runs: list[datetime]
    last_runs: Annotated[list[RunOut], Field(description=gettext_noop("Its last jobs that have ended, newest first."))]


class RecurringListOut(BaseModel):
    """A page of recurring jobs, the next one to run first; next_cursor is null at the end."""

    items: list[RecurringOut]
    next_cursor: str | None
    page_size: int


class TriggeredOut(BaseModel):
    """The job that was made."""

    job_id: UUID
