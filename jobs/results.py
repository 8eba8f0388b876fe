"""What a handler returns, as JSON.

| Python | JSON |
| --- | --- |
| None, bool, int, float, str, list, tuple, dict | as they are |
| Decimal, UUID, Path, lazy translations | their text |
| datetime, date, time | ISO 8601 text; a naive datetime has no offset |
| timedelta | seconds, a number |
| Enum | its value |
| dataclass | an object of its fields |
| Pydantic model | what the model itself makes of it for JSON, by alias |
| set, frozenset | a list, sorted |
| keys that are int, UUID, date, datetime or Enum | their text |

Everything else is refused with its type and path (bytes too: text and base64 are both guesses, an artifact is not), and
so are values that contain themselves, two keys of one text, values whose own code raises, and what `jobs.jsonvalues`
refuses. Subclasses count as what they are subclasses of.
"""

import dataclasses
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from pydantic import BaseModel

from jobs import jsonvalues
from jobs.errors import JobError, ResultError
from jobs.jsonvalues import JsonProblem, Link, path_of

_TEXT = (Decimal, UUID, PurePath, Promise)
_INSTANTS = (datetime, date, time)


def result_json(value: Any, *, depth: int, max_bytes: int) -> str:
    """A handler's result as compact JSON text. Raises ResultError naming what can't be stored and where in it."""
    mapping = _Mapping(depth, max_bytes)
    try:
        plain = mapping.plain(value, None, ())
        return jsonvalues.encode(plain, depth=depth, max_bytes=max_bytes).decode()
    except JsonProblem as problem:
        raise _refusal(problem.path, problem.message) from None
    except JobError:  # the word "stop", which may come at any step of a handler
        raise
    except Exception as error:  # of the values' own code: a property, an iterator, a text
        what = {"type": mapping.type, "error": type(error).__name__}
        raise _refusal(path_of(mapping.link), _("%(type)s can't be read: %(error)s.") % what) from error


def _refusal(path: str, message: str) -> ResultError:
    return ResultError(f"result.{path}: {message}" if path else f"result: {message}")


class _Mapping:
    """One result's way to JSON's own types. One frame a level, so that `depth` (500 at most) bounds the recursion."""

    def __init__(self, depth: int, max_bytes: int) -> None:
        self._depth = depth
        self._max_bytes = max_bytes
        self._members = 0
        self.link: Link = None  # where the value stands that is being read, and its type's name
        self.type = ""

    def plain(self, value: Any, link: Link, around: tuple[int, ...]) -> Any:
        """`value` without anything that JSON lacks; `around` names the containers that it stands in."""
        self.link, self.type = link, type(value).__name__
        value = _leaf(value, link)
        if isinstance(value, (str, int, float, type(None))):
            return value
        if not isinstance(value, (dict, list, tuple, set, frozenset)):
            raise JsonProblem(path_of(link), _not_json(value))
        self._admit(value, link, around)
        around = (*around, id(value))
        if isinstance(value, dict):
            texts = [_key(key, link) for key in value]
            if len(set(texts)) < len(texts):
                raise JsonProblem(path_of(link), _("Two keys are the same as text."))
            pairs = zip(texts, value.values(), strict=True)
            return {text: self.plain(member, (link, text), around) for text, member in pairs}
        members = [self.plain(member, (link, index), around) for index, member in enumerate(value)]
        return sorted(members, key=_order) if isinstance(value, (set, frozenset)) else members

    def _admit(self, value: Any, link: Link, around: tuple[int, ...]) -> None:
        if id(value) in around:
            raise JsonProblem(path_of(link), _("It contains itself."))
        if len(around) >= self._depth:
            raise JsonProblem(path_of(link), jsonvalues.too_deep(self._depth))
        self._members += len(value)
        if self._members * 2 > self._max_bytes:
            raise jsonvalues.too_large(self._max_bytes)


def _leaf(value: Any, link: Link) -> Any:
    """Enums, texts and instants as JSON scalars, models and dataclasses as dicts; anything else as it is."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, _TEXT):
        return str(value)
    if isinstance(value, _INSTANTS):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, BaseModel):
        try:
            return value.model_dump(mode="json", by_alias=True)
        except (TypeError, ValueError) as error:  # pydantic_core's own are ValueErrors
            raise JsonProblem(path_of(link), str(error)) from error
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value


def _key(key: Any, link: Link) -> str:
    key = key.value if isinstance(key, Enum) else key
    if isinstance(key, str):
        return key
    if isinstance(key, (datetime, date)):
        return key.isoformat()
    if isinstance(key, (int, UUID)) and not isinstance(key, bool):
        return str(key)
    what = {"type": type(key).__name__}
    raise JsonProblem(path_of(link, repr(key)), _("A key must be text, not %(type)s.") % what)


def _order(member: Any) -> tuple[str, Any]:
    """Numbers among numbers, texts among texts, the rest by its JSON."""
    if isinstance(member, (int, float)):
        return "number", member
    return ("text", member) if isinstance(member, str) else ("~", repr(member))


def _not_json(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _("Bytes are not JSON: return text, or leave a file in ctx.folder.")
    return _("%(type)s is not a JSON value.") % {"type": type(value).__name__}
