"""The section `recurring_jobs` of the settings: recurring jobs that are declared, each by its name."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from jobs.bounds import PRIORITIES, RECURRING_PATTERN
from jobs.sections import Count, QueueName, Section, TypeName, table


class DeclaredRecurring(Section):
    """A recurring job. `enabled`: whether it is when it is made; after that people say so.

    Each worker looks at its schedule, its type's handler and its payload when it starts: what is wrong there is told,
    and stops no worker.
    """

    type: TypeName
    cron: str
    timezone: str = "UTC"
    payload: Annotated[dict[str, Any], BeforeValidator(table)] = {}
    queue: QueueName | None = None
    priority: Count | None = Field(None, ge=PRIORITIES[0], le=PRIORITIES[1])
    overlap: Literal["skip", "allow", "queue"] = "skip"
    misfire: Literal["once", "skip", "all"] = "once"
    enabled: bool = True


RecurringName = Annotated[str, StringConstraints(pattern=RECURRING_PATTERN)]
RecurringJobs = Annotated[dict[RecurringName, DeclaredRecurring], BeforeValidator(table)]
