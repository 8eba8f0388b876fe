"""What the caller of `turno.testing` handed in: a handler, an instant, a length of time."""

import asyncio
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError

from jobs import jsonvalues
from jobs.conf import conf
from jobs.errors import Refused, UnknownType, refused_fields
from jobs.jobtypes import JobType
from jobs.registry import catalogue, type_of
from jobs.requests import plain_payload

type Handler = Callable[..., Any] | JobType | str


def declared_type(handler: Handler) -> JobType:
    """The type of a handler, of a JobType, or of a type's name. Raises UnknownType, or TypeError for what is none."""
    if isinstance(handler, JobType):
        return handler
    try:
        found = catalogue.require(handler) if isinstance(handler, str) else type_of(handler)
    except UnknownType as error:
        error.add_note(f"asked for: {handler!r}")
        raise
    if found is None:
        raise TypeError(f"{handler!r} is no handler; expected what @job_type decorates, a JobType or a type's name")
    return found


def payload_of(declared: JobType, payload: Any) -> Any:
    """The payload as the handler of an enqueued job gets it. Raises Invalid or PayloadTooLarge where no job would have
    come of it; the text names the field."""
    limits = conf().limits
    try:
        raw = jsonvalues.encode(plain_payload(payload), depth=limits.depth, max_bytes=limits.payload)
        return declared.parse(json.loads(raw))
    except jsonvalues.JsonProblem as problem:
        refusal = problem.refusal("payload")
    except PydanticSerializationError as error:
        refusal = refused_fields({"payload": [str(error)]})
    except Refused as error:
        refusal = error
    raise refused_fields(refusal.errors, type(refusal), **refusal.extra)


def queues_of(given: str | Iterable[str] | None) -> frozenset[str] | None:
    """The names of queues. Raises TypeError for what is none."""
    if given is None:
        return None
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"queue: expected the name of a queue, or several, got {type(name).__name__}")
    return frozenset(names)


def instant_of(name: str, given: datetime | str) -> datetime:
    """An instant in UTC. Raises TypeError or ValueError where it is none, or has no offset."""
    if not isinstance(given, (datetime, str)):
        raise TypeError(f"{name}: expected a datetime or its ISO 8601 text, got {type(given).__name__}")
    try:
        instant = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise ValueError(f"{name}: expected a datetime or its ISO 8601 text, got {given!r}") from None
    if instant.utcoffset() is None:
        raise ValueError(f"{name}: expected an instant with its offset from UTC, such as 2026-01-31T12:00:00Z")
    return instant.astimezone(UTC)


def length_of(name: str, given: timedelta | float) -> timedelta:
    """A length of time, of a number in seconds. TypeError for what is none, ValueError below zero or too long."""
    if isinstance(given, bool) or not isinstance(given, (timedelta, int, float)):
        raise TypeError(f"{name}: expected seconds or a timedelta, got {type(given).__name__}")
    try:
        length = given if isinstance(given, timedelta) else timedelta(seconds=given)
    except (ValueError, OverflowError):  # no number at all, or longer than a calendar
        raise ValueError(f"{name}: expected a number of seconds that a calendar holds, got {given}") from None
    if length < timedelta():
        raise ValueError(f"{name}: expected no less than zero, got {given}")
    return length


def refuse_in_loop(call: str, instead: str, would: str = "block the event loop") -> None:
    """Raise RuntimeError inside an event loop, where `call` would do that."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{call} would {would}; write {instead}")


def files_below(folder: Path | None) -> dict[str, bytes]:
    """The content of each file below a folder, by relative path with "/"."""
    if folder is None:
        return {}
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
