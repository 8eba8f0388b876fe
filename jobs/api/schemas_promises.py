"""What the API answers about the promises. Instants in UTC; spans and ages in seconds."""

from datetime import datetime
from typing import Annotated

from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field

from jobs.promises import Standing


class StatementOut(BaseModel):
    """An invariant: what holds, whether it does, and what to do when it does not."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    says: str
    standing: Standing
    count: Annotated[int, Field(description=gettext_noop("How many rows break it."))]
    more: Annotated[bool, Field(description=gettext_noop("There are more of those than were counted."))]
    examples: Annotated[list[str], Field(description=gettext_noop("The ids of five of them at most."))]
    since: Annotated[datetime | None, Field(description=gettext_noop("Since when every look has found it broken."))]
    advice: str


class PromiseOut(BaseModel):
    """One of the three promises, with its statements, the broken ones first."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    says: str
    standing: Standing
    statements: list[StatementOut]


class LookOut(BaseModel):
    """The last look at the promises, which the leader makes every minute."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime
    age: float
    seconds: Annotated[float, Field(description=gettext_noop("How long it took."))]
    attended: Annotated[
        bool, Field(description=gettext_noop("A worker led, so that what is soon true was looked at too."))
    ]
    unanswered: Annotated[list[str], Field(description=gettext_noop("The statements that were not answered in time."))]
    kept_for: Annotated[
        float | None,
        Field(description=gettext_noop("For so many seconds every look has found them kept, two days at most.")),
    ]


class StormOut(BaseModel):
    """The report of the last storm: what was struck, how often, and what was broken afterwards."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime
    place: str
    seed: int
    seconds: float
    jobs: int
    faults: Annotated[dict[str, int], Field(description=gettext_noop("How often, by kind of fault."))]
    broken: Annotated[list[str], Field(description=gettext_noop("The names of what was broken afterwards."))]


class PromisesOut(BaseModel):
    """The three promises as the leader's last look has found them."""

    standing: Standing
    look: Annotated[LookOut | None, Field(description=gettext_noop("null: nobody has looked within two days."))]
    old: Annotated[bool, Field(description=gettext_noop("The last look is too old to say anything of now."))]
    promises: list[PromiseOut]
    storm: StormOut | None
