"""What the API takes. Unknown fields are refused; what a field means stands in its description.

The bounds of `jobs.bounds` stand here for the OpenAPI document; `jobs.requests` checks them for every door.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
)

from jobs import bounds
from jobs.durations import parse_duration
from jobs.queries import NEWEST
from jobs.queries.cursor import PATTERN as CURSOR_PATTERN
from jobs.states import State

INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:.*", re.ASCII | re.DOTALL)
DURATION_TEXT = r"^\d{1,9}(\.\d{1,6})? ?(ms|s|sec|m|min|h|d)?$"
PAGES = 200
PAGE_SIZE = 200


def storable(value: str) -> str:
    """The text, where the database can keep it. Raises ValueError."""
    if "\0" in value:
        raise ValueError(_("Text with a NUL character can't be stored."))
    return value


def _instant_text(value: Any) -> Any:
    """Only ISO 8601 text: a bare number would silently be read as seconds since 1970."""
    if value is None or isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not INSTANT.fullmatch(value):
        raise ValueError(_("Expected an instant such as 2026-01-31T12:00:00Z."))
    return re.sub(r" (\d\d:?\d\d)$", r"+\1", value)  # a plus sign that an address turned into a blank


def _in_utc(value: datetime) -> datetime:
    """Python takes offsets up to a day, PostgreSQL only up to 16 hours."""
    try:
        return value.astimezone(UTC)
    except OverflowError:  # at either end of the calendar; who stores it refuses it
        return value


def _duration(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool):
        raise ValueError(_('Expected a duration such as "60s", "10 min", "500ms", "7d" or a number of seconds.'))
    try:
        return parse_duration(value)
    except (ValueError, OverflowError):
        raise ValueError(
            _('Expected a duration such as "60s", "10 min", "500ms", "7d" or a number of seconds.')
        ) from None


def _seconds(**numbers: float) -> WithJsonSchema:
    """How the document says seconds: a number with these bounds, or text."""
    either = [{"type": "number", **numbers}, {"type": "string", "pattern": DURATION_TEXT}]
    return WithJsonSchema({"anyOf": either, "examples": [60, "10 min"]})


def whole(value: Any) -> Any:
    """3.0 is a whole number of JSON, however it is written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(most: int, least: int = 1) -> StringConstraints:
    """Its length: told in characters only if it stands before `storable`."""
    return StringConstraints(min_length=least, max_length=most)


Text = Annotated[str, AfterValidator(storable)]
Priority = Annotated[StrictInt, Field(ge=bounds.PRIORITIES[0], le=bounds.PRIORITIES[1]), BeforeValidator(whole)]
AtOnce = Annotated[StrictInt, Field(ge=bounds.CONCURRENCY[0], le=bounds.CONCURRENCY[1]), BeforeValidator(whole)]
Attempts = Annotated[StrictInt, Field(ge=bounds.ATTEMPTS[0], le=bounds.ATTEMPTS[1]), BeforeValidator(whole)]
Key = Annotated[str, _text(bounds.KEY_LENGTH), AfterValidator(storable)]
Origin = Annotated[str, _text(bounds.ORIGIN_LENGTH), AfterValidator(storable)]
Tag = Annotated[str, _text(bounds.TAG_LENGTH), AfterValidator(storable)]
CancelReason = Annotated[str, _text(bounds.REASON_LENGTH, least=0), AfterValidator(storable)]
Instant = Annotated[AwareDatetime, BeforeValidator(_instant_text), AfterValidator(_in_utc)]
Delay = Annotated[float, BeforeValidator(_duration), _seconds(minimum=0, maximum=bounds.LONGEST_DELAY)]
Timeout = Annotated[float, BeforeValidator(_duration), _seconds(exclusiveMinimum=0, maximum=bounds.LONGEST_TIMEOUT)]

TypeName = Annotated[
    str, Field(pattern=bounds.TYPE_PATTERN, description=gettext_noop("The job type, as the catalogue names it."))
]
OwnQueue = Annotated[
    str | None, Field(pattern=bounds.QUEUE_PATTERN, description=gettext_noop("The queue; left out, the type's own."))
]
OwnPriority = Annotated[
    Priority | None, Field(description=gettext_noop("Larger starts first; left out, the type's own."))
]


class Body(BaseModel):
    """A body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class JobIn(Body):
    """A job to enqueue, now or for later."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"type": "report.generate", "payload": {}},
                {"type": "report.generate", "payload": {}, "delay": "10 min", "priority": 5},
            ]
        },
    )

    type: TypeName
    payload: Annotated[
        dict[str, Any], Field(description=gettext_noop("What the handler gets; each type has its own fields."))
    ] = {}
    queue: OwnQueue = None
    priority: OwnPriority = None
    run_at: Annotated[
        Instant | None, Field(description=gettext_noop("The instant from which it may start, ISO 8601 with an offset."))
    ] = None
    delay: Annotated[
        Delay | None, Field(description=gettext_noop('Seconds from now, as a number or as text such as "10 min".'))
    ] = None
    unique_key: Annotated[
        Key | None,
        Field(
            description=gettext_noop("At most one active job has this key; a second one is answered with the first."),
        ),
    ] = None
    concurrency_key: Annotated[
        Key | None,
        Field(description=gettext_noop("Jobs with one key never run together; the others wait for their turn.")),
    ] = None
    concurrency_limit: Annotated[
        AtOnce | None,
        Field(description=gettext_noop("How many jobs with the concurrency key may run at once; left out, one.")),
    ] = None
    max_attempts: Annotated[
        Attempts | None,
        Field(description=gettext_noop("Attempts in all; left out, the type's own.")),
    ] = None
    timeout: Annotated[
        Timeout | None, Field(description=gettext_noop("How long one attempt may take, in seconds or as text."))
    ] = None
    tags: Annotated[
        list[Tag],
        Field(max_length=bounds.TAGS, description=gettext_noop("Words to find it by.")),
    ] = []
    origin: Annotated[
        Origin | None,
        Field(description=gettext_noop("Who asked for it, for people to read.")),
    ] = None
    after: Annotated[
        list[UUID],
        Field(
            max_length=bounds.PARENTS,
            description=gettext_noop(
                "Ids of jobs of the same owner that exist already: it starts when all of them have succeeded."
            ),
        ),
    ] = []
    on_parent_failure: Annotated[
        Literal["cancel", "run"] | None,
        Field(
            description=gettext_noop(
                "What it does when one of them does not succeed: cancel (left out), with the jobs that wait for it in "
                "turn, or run once all have ended."
            )
        ),
    ] = None


class BatchIn(Body):
    """Up to 1000 jobs, enqueued all or none."""

    jobs: Annotated[list[JobIn], Field(min_length=1, max_length=bounds.LARGEST_BATCH)]


class CancelIn(Body):
    """Why a job is cancelled."""

    reason: Annotated[CancelReason | None, Field(description=gettext_noop("Shown in the job's time line."))] = None


class JobsQuery(BaseModel):
    """Which jobs, in which order, which page."""

    state: Annotated[State | None, Field(description=gettext_noop("Only jobs in this state."))] = None
    type: Annotated[
        str | None, Field(pattern=bounds.TYPE_PATTERN, description=gettext_noop("Only jobs of this type."))
    ] = None
    queue: Annotated[
        str | None, Field(pattern=bounds.QUEUE_PATTERN, description=gettext_noop("Only jobs of this queue."))
    ] = None
    tag: Annotated[Tag | None, Field(description=gettext_noop("Only jobs with this tag."))] = None
    search: Annotated[
        Key | None,
        Field(
            description=gettext_noop("An id, or exactly a type, a queue or a unique key."),
        ),
    ] = None
    created_from: Annotated[Instant | None, Field(description=gettext_noop("Created at this instant or later."))] = None
    created_to: Annotated[Instant | None, Field(description=gettext_noop("Created before this instant."))] = None
    order: Annotated[
        Literal["-created", "created"],
        Field(description=gettext_noop("-created: newest first; created: oldest first.")),
    ] = NEWEST
    cursor: Annotated[
        str | None,
        Field(
            pattern=CURSOR_PATTERN,
            description=gettext_noop(
                "next_cursor of the page before; it carries its order, and page is not used with it."
            ),
        ),
    ] = None
    page: Annotated[
        int, Field(ge=1, le=PAGES, description=gettext_noop("The page, from 1 to 200; further on, use cursor."))
    ] = 1
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE, description=gettext_noop("Jobs per page."))] = 50


class LogsQuery(BaseModel):
    """Which lines of a job's log."""

    execution: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description=gettext_noop("Only the lines of this execution."))
    ] = None
    after: Annotated[int, Field(ge=0, le=2**63 - 1, description=gettext_noop("next_after of the page before."))] = 0
    limit: Annotated[int, Field(ge=1, le=1000, description=gettext_noop("Lines per page."))] = 500
