"""Acts over many: what is taken (the named, or all that match a filter), what a dry run and a run answer."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from jobs import bounds
from jobs.api.schemas_in import Body, CancelReason, Instant, Key, Tag
from jobs.bulk import IDS_MOST, Act, Target
from jobs.states import State

UUID7 = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
NO_DEFAULT = object()
LEFT_OUT: Any = None  # of a field that is there or not, and never null


def _one_of_two(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"required": ["ids"]}, {"required": ["filter"]}]
    _no_nulls(schema)


def _no_nulls(schema: dict[str, Any]) -> None:
    """A field is there or is left out; the default that says so is none of the document's."""
    for field in schema["properties"].values():
        if field.get("default", NO_DEFAULT) is None:
            del field["default"]


def _not_empty(schema: dict[str, Any]) -> None:
    schema["minProperties"] = 1
    _no_nulls(schema)


class Filter(Body):
    """At least one condition: an empty one would mean everything."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_not_empty)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(_("Give at least one condition: an empty filter would mean everything."))
        return self

    def given(self) -> dict[str, Any]:
        """The conditions, as `jobs.queries` takes them."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class JobFilterIn(Filter):
    """Which jobs; every condition must hold. At least one: an empty filter would mean all jobs."""

    state: Annotated[State, Field(description=gettext_noop("Only jobs in this state."))] = LEFT_OUT
    type: Annotated[str, Field(pattern=bounds.TYPE_PATTERN, description=gettext_noop("Only jobs of this type."))] = (
        LEFT_OUT
    )
    queue: Annotated[str, Field(pattern=bounds.QUEUE_PATTERN, description=gettext_noop("Only jobs of this queue."))] = (
        LEFT_OUT
    )
    tag: Annotated[Tag, Field(description=gettext_noop("Only jobs with this tag."))] = LEFT_OUT
    search: Annotated[Key, Field(description=gettext_noop("An id, or exactly a type, a queue or a unique key."))] = (
        LEFT_OUT
    )
    created_from: Annotated[Instant, Field(description=gettext_noop("Created at this instant or later."))] = LEFT_OUT
    created_to: Annotated[Instant, Field(description=gettext_noop("Created before this instant."))] = LEFT_OUT


class LetterFilterIn(Filter):
    """Which dead letters; every condition must hold. At least one: an empty filter would mean all of them."""

    fingerprint: Annotated[Key, Field(description=gettext_noop("Only dead letters of this cause."))] = LEFT_OUT
    type: Annotated[
        str, Field(pattern=bounds.TYPE_PATTERN, description=gettext_noop("Only dead letters of this type."))
    ] = LEFT_OUT
    queue: Annotated[
        str, Field(pattern=bounds.QUEUE_PATTERN, description=gettext_noop("Only dead letters of this queue."))
    ] = LEFT_OUT
    search: Annotated[
        Key, Field(description=gettext_noop("Found anywhere in the type, the error's class or its message."))
    ] = LEFT_OUT


class BulkIn(Body):
    """What every act over many takes: `ids` or `filter`, one of the two."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_one_of_two)

    ids: Annotated[
        list[UUID], Field(min_length=1, max_length=IDS_MOST, description=gettext_noop("The ids to act on."))
    ] = LEFT_OUT
    dry_run: Annotated[
        StrictBool, Field(description=gettext_noop("Change nothing; answer what the act would apply to."))
    ] = False
    before: Annotated[
        Instant, Field(description=gettext_noop("Leave out what was created at this instant or later; from a dry run."))
    ] = LEFT_OUT
    id: Annotated[
        str,
        Field(
            pattern=UUID7, description=gettext_noop("The id that a dry run gave: a repeated request acts only once.")
        ),
    ] = LEFT_OUT

    @model_validator(mode="after")
    def _one(self) -> Self:
        if ("ids" in self.model_fields_set) == ("filter" in self.model_fields_set):
            raise ValueError(_("Name the ids, or give a filter: one of the two."))
        return self


class BulkJobsIn(BulkIn):
    """The jobs of an act over many: the named, or all that match a filter."""

    filter: Annotated[
        JobFilterIn, Field(description=gettext_noop("All jobs that match, as far as the act applies to them."))
    ] = LEFT_OUT


class BulkCancelIn(BulkJobsIn):
    """The jobs to cancel, and why."""

    reason: Annotated[CancelReason, Field(description=gettext_noop("Shown in the jobs' time lines."))] = LEFT_OUT


class BulkLettersIn(BulkIn):
    """The dead letters of an act over many: the named, or all pending ones that match a filter."""

    filter: Annotated[LetterFilterIn, Field(description=gettext_noop("All pending dead letters that match."))] = (
        LEFT_OUT
    )


class SampleOut(BaseModel):
    """One of those that the act would meet."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    type: str
    state: State
    queue: str


class BulkPreviewOut(BaseModel):
    """What an act over many would apply to; nothing was changed."""

    model_config = ConfigDict(from_attributes=True)

    dry_run: Literal[True] = True
    id: Annotated[UUID, Field(description=gettext_noop("Send it with the act, so that a repeat of it acts only once."))]
    before: Annotated[
        datetime, Field(description=gettext_noop("Send it with the act, so that it leaves out what came later."))
    ]
    count: Annotated[int | None, Field(description=gettext_noop("How many; null where counting would take too long."))]
    estimated: bool
    by_state: dict[str, int | None]
    samples: list[SampleOut]


class BulkRunOut(BaseModel):
    """An act over many, which runs on the server; ask for it again until ended is true."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    act: Act
    target: Target
    state: Literal["running", "stopping", "stopped", "done", "failed"]
    ended: bool
    total: Annotated[int | None, Field(description=gettext_noop("How many there were; null where nobody counted."))]
    estimated: bool
    done: Annotated[int, Field(description=gettext_noop("How many were looked at so far."))]
    applied: int
    requested: Annotated[
        int, Field(description=gettext_noop("The part of applied that was asked of a running job and is yet to come."))
    ]
    skipped: Annotated[dict[str, int], Field(description=gettext_noop("How many were left out, by reason."))]
    error: str | None
    actor: str | None
    before: datetime
    created_at: datetime
    finished_at: datetime | None
