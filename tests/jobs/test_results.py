"""What handlers return, as JSON."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from jobs.errors import ResultError
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
