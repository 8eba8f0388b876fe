"""What the API answers about the whole house: figures and queues. Instants in UTC; durations and ages in seconds."""

from datetime import datetime
from typing import Annotated

from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field


class EndedOut(BaseModel):
    """What ended in a span of time; means in seconds."""

    model_config = ConfigDict(from_attributes=True)

    succeeded: int
    failed: int
    retried: int
    cancelled: int
    lost: int
    mean_duration: float | None
    mean_wait: float | None


class OutboxOut(BaseModel):
    """The messages that wait for the broker; zeros where PostgreSQL carries the work."""

    model_config = ConfigDict(from_attributes=True)

    waiting: int
    at_least: Annotated[bool, Field(description=gettext_noop("There are more of those than were counted."))]
    oldest_age: Annotated[float | None, Field(description=gettext_noop("The age of the oldest of them in seconds."))]
    failing: Annotated[int, Field(description=gettext_noop("Those that the broker refused at the last try."))]


class StatsOut(BaseModel):
    """The figures of now and of the last 24 hours."""

    active: Annotated[dict[str, int], Field(description=gettext_noop("Jobs that have not ended, by state."))]
    parked: Annotated[
        int, Field(description=gettext_noop("The Scheduled ones that wait for something other than an instant."))
    ]
    dead_letters: int
    causes: Annotated[
        int, Field(description=gettext_noop("The causes of the pending dead letters; at most 1,000 are counted."))
    ]
    estimated: Annotated[list[str], Field(description=gettext_noop("The figures above that are estimates."))]
    oldest_enqueued_at: datetime | None
    next_run_at: datetime | None
    last_hour: EndedOut
    last_24_hours: EndedOut
    p95_duration: Annotated[
        float | None,
        Field(description=gettext_noop("An estimate over the last 24 hours; null below 20 executions, at most 1800.")),
    ]
    outbox: OutboxOut
    as_of: datetime


class PausedOut(BaseModel):
    """Why a queue is paused, since when, by whom and until when."""

    model_config = ConfigDict(from_attributes=True)

    reason: str
    who: str | None
    since: datetime
    until: datetime | None


class QueueOut(BaseModel):
    """A queue: what waits, where there is room, whether it is paused."""

    model_config = ConfigDict(from_attributes=True)

    queue: str
    waiting: Annotated[int, Field(description=gettext_noop("Enqueued jobs; an estimate where estimated says so."))]
    estimated: bool
    oldest_for: Annotated[float | None, Field(description=gettext_noop("The age of the oldest of them in seconds."))]
    parked: Annotated[int, Field(description=gettext_noop("Scheduled jobs that wait at a gate."))]
    parked_at_least: Annotated[bool, Field(description=gettext_noop("There are more of those than were counted."))]
    busy: int
    capacity: Annotated[
        int, Field(description=gettext_noop("Slots of online workers, and those still busy on other workers."))
    ]
    free: Annotated[int, Field(description=gettext_noop("Slots that take work now."))]
    workers: Annotated[int, Field(description=gettext_noop("The live workers that serve it."))]
    paused: PausedOut | None
    served: Annotated[bool, Field(description=gettext_noop("A live worker takes from it."))]
    slots: Annotated[
        int | None, Field(description=gettext_noop("Set for each worker; null: each worker's own number."))
    ]
    default_priority: Annotated[
        int | None, Field(description=gettext_noop("Of new jobs to which neither request nor type gives one; null: 0."))
    ]
    per_minute: Annotated[
        float, Field(description=gettext_noop("Executions that ended a minute, over the last 15 minutes."))
    ]
    ended_last_hour: Annotated[int, Field(description=gettext_noop("Executions that ended in the last hour."))]
    failed_last_hour: Annotated[int, Field(description=gettext_noop("Those of them that ended their job Failed."))]


class QueuesOut(BaseModel):
    """The queues, by name."""

    items: list[QueueOut]
