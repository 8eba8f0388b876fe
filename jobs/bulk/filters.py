"""Filters as they are stored with a run and read back, field by field: what is not understood whole is not acted on."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from jobs.bulk.acts import APPLIES, Act, Target
from jobs.queries.jobfilter import JobFilter
from jobs.queries.letterfilter import LetterFilter
from jobs.states import State

type AnyFilter = JobFilter | LetterFilter

_KINDS: dict[Target, TypeAdapter[Any]] = {
    Target.JOBS: TypeAdapter(JobFilter),
    Target.LETTERS: TypeAdapter(LetterFilter),
}
_FIELDS = {
    Target.JOBS: {field.name for field in fields(JobFilter)},
    Target.LETTERS: {field.name for field in fields(LetterFilter)},
}


def stored(target: Target, wanted: AnyFilter) -> dict[str, Any]:
    """The filter as plain JSON values, without what asks nothing."""
    plain: dict[str, Any] = _KINDS[target].dump_python(wanted, mode="json")
    return {name: value for name, value in plain.items() if value is not None}


def read(target: Target, plain: dict[str, Any]) -> Any:
    """The filter that `stored` made plain. Raises ValueError when another version wrote what this one can't read."""
    unknown = set(plain) - _FIELDS[target]
    if unknown:
        raise ValueError(f"unknown in the filter: {', '.join(sorted(unknown))}")
    return _KINDS[target].validate_python(plain, strict=False)


def until(wanted: JobFilter, before: datetime) -> JobFilter:
    """The filter without the jobs that came after the cut-off."""
    end = before if wanted.created_to is None else min(before, wanted.created_to)
    return replace(wanted, created_to=end)


def splits(wanted: JobFilter, act: Act) -> dict[State, JobFilter]:
    """The filter by the states, as screens show them, to which the act applies; each narrowed to one.

    A screen's "Enqueued" holds the parked jobs too, its "Scheduled" those with an instant.
    """
    applies = APPLIES[Target.JOBS, act]
    if wanted.state is not None:
        return {State(wanted.state): wanted} if wanted.state in applies else {}
    shown = [State(wanted.shown)] if wanted.shown is not None else list(State)
    return {state: replace(wanted, shown=str(state)) for state in shown if state in applies}
