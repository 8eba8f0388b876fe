"""Flow control: what is paused, the settings of queues and types, and the priority of a job that waits."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.utils.translation import gettext_noop
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StringConstraints

from jobs import bounds
from jobs.api.schemas_figures import PausedOut
from jobs.api.schemas_in import AtOnce, Body, CancelReason, Instant, Priority, storable, whole

Scope = Literal["queue", "type", "tag", "key"]
# As long as the longest of what it may be: what each scope allows is checked behind every door.
Value = Annotated[str, StringConstraints(min_length=1, max_length=bounds.KEY_LENGTH), AfterValidator(storable)]
Slots = Annotated[StrictInt, Field(ge=bounds.QUEUE_SLOTS[0], le=bounds.QUEUE_SLOTS[1]), BeforeValidator(whole)]
Rate = Annotated[str, StringConstraints(min_length=3, max_length=40), AfterValidator(storable)]


class PauseWhyIn(Body):
    """Why something is paused, and until when."""

    reason: Annotated[CancelReason, Field(description=gettext_noop("Shown to everybody who meets the pause."))] = ""
    until: Annotated[
        Instant | None,
        Field(description=gettext_noop("The instant at which it ends by itself; left out, when somebody resumes it.")),
    ] = None


class PauseIn(PauseWhyIn):
    """What to pause."""

    scope: Annotated[Scope, Field(description=gettext_noop("What it is that is paused."))]
    value: Annotated[
        Value, Field(description=gettext_noop("The name of the queue or the type, the tag, or the concurrency key."))
    ]


class PauseQuery(BaseModel):
    """Which pause to lift."""

    scope: Annotated[Scope, Field(description=gettext_noop("What it is that is paused."))]
    value: Annotated[
        Value, Field(description=gettext_noop("The name of the queue or the type, the tag, or the concurrency key."))
    ]


class PauseOut(BaseModel):
    """Something that is paused, why, since when, by whom and until when."""

    model_config = ConfigDict(from_attributes=True)

    scope: Scope
    value: str
    reason: str
    who: str | None
    since: datetime
    until: datetime | None


class PausesOut(BaseModel):
    """What is paused now, the oldest first; at most 500."""

    items: list[PauseOut]


class QueueIn(Body):
    """Settings of a queue; one that is left out stays as it is, null takes it back."""

    slots: Annotated[
        Slots | None,
        Field(
            description=gettext_noop("How many jobs of it each worker runs at once; null: each worker's own number.")
        ),
    ] = None
    default_priority: Annotated[
        Priority | None,
        Field(description=gettext_noop("That of new jobs to which neither the request nor their type gives one.")),
    ] = None


class QueueSettingsOut(BaseModel):
    """The settings of a queue."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    slots: int | None
    default_priority: int | None


class LimitsIn(Body):
    """Limits of a type in the whole cluster; null: none."""

    max_running: Annotated[
        AtOnce | None,
        Field(description=gettext_noop("How many may run at once in the whole cluster; null: any number.")),
    ]
    rate_limit: Annotated[
        Rate | None,
        Field(description=gettext_noop('How many may start in a span of time, such as "100/m"; null: any.')),
    ]


class LimitsOut(BaseModel):
    """The limits of a type that hold now."""

    name: str
    max_running: int | None
    rate_limit: str | None


class PriorityIn(Body):
    """The new priority of a job that waits."""

    priority: Annotated[Priority, Field(description=gettext_noop("Larger starts first."))]


class CircuitOut(BaseModel):
    """A breaker that is not closed: the type's jobs wait parked until one that is tried succeeds."""

    state: Literal["open", "half_open"]
    opened_at: datetime
    open_for: float
    retry_in: Annotated[float | None, Field(description=gettext_noop("Null while a job is tried; 0: the next one is."))]
    executions: int
    failures: Annotated[int, Field(description=gettext_noop("Of those executions, within span: why it opened."))]
    span: float
    probe: Annotated[UUID | None, Field(description=gettext_noop("The job that is tried."))]
    parked: int
    at_least: Annotated[bool, Field(description=gettext_noop("More are parked than were counted."))]


class TypeOut(BaseModel):
    """A job type and what holds for its jobs; registered is false for one that was only seen."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    name: str
    registered: bool
    description: str
    module: str | None
    isolation: str | None
    queue: str | None
    priority: int | None
    timeout: float | None
    max_attempts: int | None
    max_running: Annotated[
        int | None, Field(description=gettext_noop("How many may run at once in the whole cluster; null: any number."))
    ]
    rate_limit: Annotated[
        str | None, Field(description=gettext_noop('How many may start in a span of time, such as "100/m"; null: any.'))
    ]
    limits_by: Annotated[
        str | None, Field(description=gettext_noop("Who has set these limits; null: they are as declared."))
    ]
    paused: Annotated[PausedOut | None, Field(description=gettext_noop("The pause of the type; null without one."))]
    circuit: Annotated[CircuitOut | None, Field(description=gettext_noop("Its breaker; null while it is closed."))]
    payload_schema: dict[str, Any] | None
    first_seen_at: datetime | None
    last_served_at: datetime | None


class TypesOut(BaseModel):
    """The job types, by name."""

    items: list[TypeOut]
