"""JSON for the eye: literal, bounded, with its secrets masked."""

import json
from decimal import Decimal

import pytest
from django.utils import translation
from pydantic import BaseModel, Field, SecretStr

from dashboard.pretty import DEEPEST, MASK, PIECES, pretty


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


@pytest.mark.parametrize(
    "value",
    [{}, [], None, True, 0, -1.5, "", "ção", [1, 2, 3], {"a": {"b": [1, {"c": None}]}}, {"": ""}, [[], {}],
     "<script>", 'quo"te\\', 10**18, 5e-324, {"a b": "x" * 200}],
)  # fmt: skip
def test_what_is_shown_is_the_same_json(value):
    shown = pretty(value)
    assert json.loads(shown.text) == value
    assert not shown.cut


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"n": value}
    return value


def test_sixty_four_levels_are_shown_and_one_more_is_not():
    assert json.loads(pretty(nested(DEEPEST)).text) == nested(DEEPEST)
    assert pretty(nested(500)).cut


def test_a_large_value_is_cut_and_says_so():
    shown = pretty([{"a": n} for n in range(50_000)])
    assert shown.cut
    assert len(shown.pieces) < PIECES + 10
    assert "cut here" in shown.text


def test_a_long_text_says_how_much_is_missing():
    shown = pretty({"a": "x" * 9000})
    assert "5000 more characters" in shown.text
    assert len(shown.text) < 5000


def test_huge_numbers_are_read_easily_where_a_double_says_the_same():
    assert pretty(json.loads("1" + "0" * 308)).text == "1e+308"
    assert pretty(int("9" * 300)).text == "9" * 300
    assert Decimal(pretty(10**400).text) == 10**400


def test_what_has_no_shape_is_written_as_an_escape():
    assert pretty("a\u202eb\u0007\u200b").text == '"a\\u202eb\\u0007\\u200b"'


class Login(BaseModel):
    user: str
    password: SecretStr


class Task(BaseModel):
    plain: str
    token: SecretStr | None = None
    own: str = Field("", json_schema_extra={"secret": True})
    logins: list[Login] = []
    by_name: dict[str, Login] = {}
    secrets: list[SecretStr] = []


def test_fields_that_the_schema_marks_secret_are_masked_wherever_they_stand():
    login = {"user": "ana", "password": "hunter2"}
    value = {
        "plain": "seen",
        "token": "hunter2",
        "own": {"any": "hunter2"},
        "logins": [login],
        "by_name": {"x": login},
        "secrets": ["hunter2", "hunter2"],
    }
    shown = pretty(value, Task.model_json_schema()).text
    assert "hunter2" not in shown
    assert shown.count(MASK) == 6
    assert "seen" in shown
    assert "ana" in shown


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, {"anyOf": [{"$ref": "#"}]}, {"properties": []},
     {"$ref": "elsewhere"}, {"anyOf": {}}, {"items": 3, "prefixItems": {}}, {"additionalProperties": True}],
)  # fmt: skip
def test_a_strange_schema_harms_nothing(schema):
    assert json.loads(pretty({"a": [{"b": 1}]}, schema).text) == {"a": [{"b": 1}]}


def test_a_recursive_schema_masks_at_every_level():
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {
        "key": {"type": "string", "writeOnly": True}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
    }}}}  # fmt: skip
    assert pretty({"key": "s", "next": {"key": "s", "next": None}}, schema).text.count(MASK) == 2
