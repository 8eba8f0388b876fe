"""Why a job waits, as the API answers it. Durations are seconds."""

from typing import Annotated
from uuid import UUID

from django.utils.translation import gettext_noop
from pydantic import BaseModel, Field

from jobs.states import State


class OtherJobOut(BaseModel):
    """A job that another one waits for."""

    id: UUID
    type: str
    state: State
    since_for: Annotated[
        float | None, Field(description=gettext_noop("Seconds that it has held its slot; null where it has none."))
    ]
    worker: str | None


class ReasonOut(BaseModel):
    """Why a job waits, in words, and what would help; kind is for programs."""

    kind: Annotated[
        str,
        Field(
            description=gettext_noop(
                "A value of waiting_for, or pause, queue_unserved, type_unserved, gives_up, message, place."
            )
        ),
    ]
    text: str
    note: str
    help: Annotated[str, Field(description=gettext_noop("What would let it run; empty where nothing is to be done."))]
    command: Annotated[str | None, Field(description=gettext_noop("A command that would help."))]
    ends_in: Annotated[float | None, Field(description=gettext_noop("Seconds until it is over by itself."))]
    since_for: Annotated[float | None, Field(description=gettext_noop("Seconds that it has lasted."))]
    jobs: Annotated[
        list[OtherJobOut], Field(description=gettext_noop("Who holds the slots, or which parents have not ended."))
    ]
    more_jobs: Annotated[int, Field(description=gettext_noop("How many of those are not named."))]
