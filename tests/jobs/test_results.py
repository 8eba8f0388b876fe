"""What handlers return, as JSON."""

import json
from collections import Counter, OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, Field

from jobs.errors import JobTimeout, ResultError
from jobs.results import result_json

ROOMY = {"depth": 64, "max_bytes": 262_144}
ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


class Colour(Enum):
    RED = "red"
    ODD = object()


class Size(IntEnum):
    SMALL = 1


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    when: datetime | None = None


@dataclass
class Node:
    next: Any = None


class Pair(NamedTuple):
    one: int
    other: list[int]


class Flags(Flag):
    A = 1
    B = 2


class Odd(str):
    """Text with a word of its own for itself."""

    def __str__(self) -> str:
        raise ZeroDivisionError


@dataclass
class Holder:
    word: str
    inner: list[str]


class Pieces(BaseModel):
    """What the model makes of its fields is the model's own affair."""

    when: datetime = Field(datetime(2026, 1, 31, tzinfo=UTC), serialization_alias="given")
    some: set[int] = {2, 1}
    raw: bytes = b"text"


class Model(BaseModel):
    amount: Decimal
    point: Point


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ({"a": [1, 2.5, "é", True, None]}, {"a": [1, 2.5, "é", True, None]}),
        (Decimal("1.10"), "1.10"),
        (ID, str(ID)),
        (PurePosixPath("/srv/x"), "/srv/x"),
        (gettext_lazy("Invalid data"), "Invalid data"),
        (datetime(2026, 1, 31, 12, 0, tzinfo=UTC), "2026-01-31T12:00:00+00:00"),
        (datetime(2026, 1, 31, tzinfo=timezone(timedelta(hours=-3))), "2026-01-31T00:00:00-03:00"),
        (datetime(2026, 1, 31, 12, 0), "2026-01-31T12:00:00"),  # noqa: DTZ001
        (date(2026, 1, 31), "2026-01-31"),
        (time(12, 30), "12:30:00"),
        (timedelta(minutes=1, milliseconds=500), 60.5),
        (Colour.RED, "red"),
        (Size.SMALL, 1),
        (Word.YES, "yes"),
        (Point(1), {"x": 1, "when": None}),
        (Point(1, datetime(2026, 1, 31, tzinfo=UTC)), {"x": 1, "when": "2026-01-31T00:00:00+00:00"}),
        (Model(amount=Decimal("1.10"), point=Point(2)), {"amount": "1.10", "point": {"x": 2, "when": None}}),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"b", 2, (1, 2)}, [2, "b", [1, 2]]),
        ((1, (2,)), [1, [2]]),
        (Pair(1, [2]), [1, [2]]),
        (Flags.A | Flags.B, 3),
        (time(1, 30, tzinfo=UTC), "01:30:00+00:00"),
        (Decimal("NaN"), "NaN"),
        (-0.0, -0.0),
        (2**70, 2**70),
        (5e-324, 5e-324),
        (OrderedDict(a=Counter("aab")), {"a": {"a": 2, "b": 1}}),
        (Holder(word=Odd("odd"), inner=[Odd("odd")]), {"word": "odd", "inner": ["odd"]}),
        (Pieces(), {"given": "2026-01-31T00:00:00Z", "some": [1, 2], "raw": "text"}),
        (
            {1: "a", ID: "b", date(2026, 1, 31): "c", Colour.RED: "d"},
            {"1": "a", str(ID): "b", "2026-01-31": "c", "red": "d"},
        ),
    ],
)
def test_each_kind_of_value_has_its_json(value, expected):
    text = result_json(value, **ROOMY)
    assert json.loads(text) == expected
    assert type(json.loads(text)) is type(expected)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "result: object is not a JSON value."),
        ({"a": [1, object()]}, "result.a.1: object is not a JSON value."),
        ({"a": Colour.ODD}, "result.a: object is not a JSON value."),
        (Point, "result: type is not a JSON value."),
        ((n for n in [1]), "result: generator is not a JSON value."),
        ({"a": b"x"}, "result.a: Bytes are not JSON: return text, or leave a file in ctx.folder."),
        (bytearray(b"x"), "result: Bytes are not JSON: return text, or leave a file in ctx.folder."),
        ({(1, 2): 3}, "result.(1, 2): A key must be text, not tuple."),
        ({1.5: 3}, "result.1.5: A key must be text, not float."),
        ({None: 3}, "result.None: A key must be text, not NoneType."),
        (range(3), "result: range is not a JSON value."),
        ([1, 2j], "result.1: complex is not a JSON value."),
        (iter([1]), "result: list_iterator is not a JSON value."),
        (ValueError("x"), "result: ValueError is not a JSON value."),
        ({"a": [float("inf")]}, "result.a.0: NaN and Infinity are not JSON numbers."),
        ({"a": "\ud800"}, "result.a: Text with half of a surrogate pair is not valid Unicode."),
        ({True: 3}, "result.True: A key must be text, not bool."),
        ({1: "a", "1": "b"}, "result: Two keys are the same as text."),
        ([float("nan")], "result.0: NaN and Infinity are not JSON numbers."),
        ({"a": "x\0"}, "result.a: Text with a NUL character can't be stored."),
        ({"a": 10**400}, "result.a: The number is too large: at most ±1.8e308."),
        ("x" * 262_144, "result: Too large: at most 262144 bytes of UTF-8 JSON."),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_type_and_path(value, message):
    with pytest.raises(ResultError) as caught:
        result_json(value, **ROOMY)
    assert str(caught.value) == message


def test_a_value_that_contains_itself_is_refused():
    knot: dict[str, Any] = {}
    knot["a"] = [knot]
    node = Node()
    node.next = node
    for value in (knot, node):
        with pytest.raises(ResultError, match=r"^result\.(a\.0: It contains itself|next\..*: Nested too deeply)"):
            result_json(value, **ROOMY)


def test_nesting_is_refused_beyond_the_limit_without_a_recursion_error():
    for levels in (65, 20_000):
        value: Any = 1
        for _ in range(levels):
            value = [value]
        with pytest.raises(ResultError, match="Nested too deeply"):
            result_json(value, **ROOMY)
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}
    assert result_json(deep, depth=500, max_bytes=10_000)


def test_shared_lists_that_would_multiply_are_refused():
    bomb: list[object] = [1]
    for _ in range(50):
        bomb = [bomb, bomb]
    with pytest.raises(ResultError, match="Too large"):
        result_json(bomb, depth=64, max_bytes=10_000)


def test_a_model_that_cannot_be_dumped_is_refused():
    class Strange(BaseModel):
        value: Any

    with pytest.raises(ResultError, match="result"):
        result_json(Strange(value=object()), **ROOMY)


def raises(error):
    def method(self, *_):
        raise error

    return method


ITEMS = type("Items", (dict,), {"values": raises(ConnectionError("away"))})
STEPS = type("Steps", (list,), {"__iter__": raises(ConnectionError("away"))})
NO_TEXT = type("NoText", (Decimal,), {"__str__": raises(RuntimeError("no text"))})
NO_FIELD = dataclass(type("NoField", (), {"__annotations__": {"x": int}, "__getattr__": raises(TimeoutError("late"))}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ITEMS(a=1), "result: Items can't be read: ConnectionError."),
        ({"rows": [0, STEPS([1])]}, "result.rows.1: Steps can't be read: ConnectionError."),
        ({"sum": NO_TEXT("1")}, "result.sum: NoText can't be read: RuntimeError."),
    ],
)
def test_a_value_whose_own_code_raises_is_refused_with_its_type_and_path(value, message):
    """And not taken for an error of the handler, which would be tried again."""
    with pytest.raises(ResultError) as caught:
        result_json(value, **ROOMY)
    assert str(caught.value) == message


def test_a_dataclass_without_one_of_its_fields_is_refused():
    value = NO_FIELD(1)
    del value.x
    with pytest.raises(ResultError, match=r"^result\.0: NoField can't be read: TimeoutError\.$"):
        result_json([value], **ROOMY)


def test_the_word_stop_that_comes_in_the_middle_is_none_of_the_values():
    stopped = type("Stopped", (list,), {"__iter__": raises(JobTimeout("limit"))})
    with pytest.raises(JobTimeout):
        result_json(stopped([1]), **ROOMY)


@pytest.mark.parametrize("character", ["a", "é", "€", "𝄞"])
def test_a_result_may_have_exactly_its_limit_in_bytes(character):
    size = len(character.encode())
    room = {"depth": 4, "max_bytes": 1024}
    full = character * ((1024 - 2) // size) + "a" * ((1024 - 2) % size)
    assert len(result_json(full, **room).encode()) == 1024
    assert len(result_json(full[:-1], **room).encode()) < 1024
    with pytest.raises(ResultError, match="at most 1024 bytes"):
        result_json(full + "a", **room)
