"""Dead letters: which ones are asked for, and how they are shown."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field

from jobs import bounds
from jobs.api.schemas_in import PAGE_SIZE, Key
from jobs.states import FailureKind, State

CURSOR = r"^[0-9]{1,17}-[0-9a-f]{32}$"


class LettersQuery(BaseModel):
    """Which dead letters, which page."""

    pending: Annotated[
        bool | None,
        Field(description=gettext_noop("true: those that wait for a person; false: those dealt with; left out: all.")),
    ] = None
    type: Annotated[
        str | None, Field(pattern=bounds.TYPE_PATTERN, description=gettext_noop("Only dead letters of this type."))
    ] = None
    queue: Annotated[
        str | None, Field(pattern=bounds.QUEUE_PATTERN, description=gettext_noop("Only dead letters of this queue."))
    ] = None
    fingerprint: Annotated[Key | None, Field(description=gettext_noop("Only dead letters of this cause."))] = None
    cursor: Annotated[
        str | None, Field(pattern=CURSOR, description=gettext_noop("next_cursor of the page before."))
    ] = None
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE, description=gettext_noop("Dead letters per page."))] = 50


class LetterOut(BaseModel):
    """A job that ended Failed and waits for a person, or was dealt with by one."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    job_id: UUID
    type: str
    queue: str
    failure_kind: FailureKind
    error_type: str | None
    error_message: str | None
    fingerprint: Annotated[str, Field(description=gettext_noop("The same for dead letters of the same cause."))]
    attempts: int
    created_at: datetime
    resolved_at: datetime | None
    resolved_how: Literal["requeued", "discarded"] | None
    resolved_by: str | None


class LettersOut(BaseModel):
    """A page of dead letters, newest first; it may hold fewer than asked for, only next_cursor null is the end."""

    items: list[LetterOut]
    next_cursor: str | None
    page_size: int


class LetterActOut(BaseModel):
    """What became of the dead letter; state is its job's."""

    id: UUID
    state: State
    resolved_how: Literal["requeued", "discarded"]
