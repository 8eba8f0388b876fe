"""Payloads against the model of their type."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

import pytest
from django.utils import translation
from pydantic import BaseModel, ConfigDict, Field, field_validator

from jobs.errors import Invalid, UnknownType
from jobs.registry import catalogue
from turno.handlers import job_type


class Color(StrEnum):
    RED = "red"


class Item(BaseModel):
    sku: str = Field(min_length=2, max_length=5, pattern="^[a-z]+$")
    quantity: int = Field(1, ge=1, lt=100)


class Order(BaseModel):
    number: int
    items: list[Item] = Field(default=[], max_length=2)
    when: datetime | None = None
    price: Decimal = Decimal(1)
    token: UUID | None = None
    color: Color = Color.RED
    kind: Literal["a", "b"] = "a"
    flag: bool = False
    ratio: Annotated[float, Field(gt=0, le=1)] = 1.0


def declare(model):
    def handler(ctx, payload): ...

    handler.__annotations__["payload"] = model
    job_type("payload.checked")(handler)
    return catalogue.get("payload.checked")


def errors_of(job, payload):
    with translation.override("en"), pytest.raises(Invalid) as refusal:
        job.parse(payload)
    return {field: [str(m) for m in messages] for field, messages in refusal.value.errors.items()}


def test_a_good_payload_becomes_the_model_with_the_types_of_json():
    job = declare(Order)
    order = job.parse({"number": 7, "items": [{"sku": "abc"}], "when": "2026-01-31T12:00:00Z", "price": "9.90"})
    assert isinstance(order, Order)
    assert (order.items[0].quantity, order.when.year, order.price) == (1, 2026, Decimal("9.90"))


PROBLEMS = [
    ({}, {"payload.number": ["This field is required."]}),
    ({"number": 1, "numbr": 2}, {"payload.numbr": ["There is no such field; did you mean number?"]}),
    ({"number": 1, "zzz": 2}, {"payload.zzz": ["There is no such field."]}),
    ({"number": "x"}, {"payload.number": ["Expected a whole number."]}),
    ({"number": 1.5}, {"payload.number": ["Expected a whole number."]}),
    ({"number": None}, {"payload.number": ["Expected a whole number."]}),
    ({"number": 1, "items": {}}, {"payload.items": ["Expected a list."]}),
    ({"number": 1, "items": ["x"]}, {"payload.items.0": ["Expected an object."]}),
    ({"number": 1, "items": [{"sku": "x"}]}, {"payload.items.0.sku": ["Expected 2 or more characters."]}),
    ({"number": 1, "items": [{"sku": "abcdef"}]}, {"payload.items.0.sku": ["Expected at most 5 characters."]}),
    ({"number": 1, "items": [{"sku": "ABC"}]}, {"payload.items.0.sku": ["Expected text of the form ^[a-z]+$."]}),
    ({"number": 1, "items": [{"sku": "abc", "x": 1}]}, {"payload.items.0.x": ["There is no such field."]}),
    ({"number": 1, "items": [{"sku": "abc", "quantity": 0}]}, {"payload.items.0.quantity": ["Expected at least 1."]}),
    (
        {"number": 1, "items": [{"sku": "abc", "quantity": 100}]},
        {"payload.items.0.quantity": ["Expected less than 100."]},
    ),
    ({"number": 1, "items": [{"sku": "ab"}] * 3}, {"payload.items": ["Expected at most 2 items, got 3."]}),
    ({"number": 1, "when": "soon"}, {"payload.when": ["Expected an instant such as 2026-01-31T12:00:00Z."]}),
    ({"number": 1, "price": "cheap"}, {"payload.price": ["Expected a decimal number."]}),
    ({"number": 1, "token": "x"}, {"payload.token": ["Expected a UUID."]}),
    ({"number": 1, "color": "blue"}, {"payload.color": ["Expected one of 'red'."]}),
    ({"number": 1, "kind": "c"}, {"payload.kind": ["Expected one of 'a' or 'b'."]}),
    ({"number": 1, "flag": "perhaps"}, {"payload.flag": ["Expected true or false."]}),
    ({"number": 1, "ratio": 0}, {"payload.ratio": ["Expected more than 0."]}),
    ({"number": 1, "ratio": 2}, {"payload.ratio": ["Expected at most 1."]}),
    (
        {"number": "x", "ratio": "y"},
        {"payload.number": ["Expected a whole number."], "payload.ratio": ["Expected a number."]},
    ),
    ([], {"payload": ["Expected an object."]}),
    ("text", {"payload": ["Expected an object."]}),
    (None, {"payload": ["Expected an object."]}),
    ({"number": 1, "kind": "\ud800"}, {"payload": ["Expected JSON."]}),
    ({"number": 1, "kind": object()}, {"payload": ["Expected JSON."]}),
]


@pytest.mark.parametrize(("payload", "errors"), PROBLEMS)
def test_every_problem_is_said_by_field(payload, errors):
    assert errors_of(declare(Order), payload) == errors


def test_unknown_fields_are_refused_also_where_the_model_would_ignore_them():
    class Lenient(BaseModel):
        model_config = ConfigDict(extra="ignore")
        number: int = 1

    job = declare(Lenient)
    assert errors_of(job, {"other": 1}) == {"payload.other": ["There is no such field."]}
    assert job.schema()["additionalProperties"] is False


def test_a_model_that_allows_unknown_fields_itself_keeps_them():
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        number: int = 1

    job = declare(Open)
    assert job.parse({"other": 1}).model_extra == {"other": 1}
    assert job.schema()["additionalProperties"] is True


def test_a_strict_model_reads_the_forms_that_json_has():
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        when: datetime
        pair: tuple[int, int]

    job = declare(Strict)
    assert job.parse({"when": "2026-01-31T12:00:00Z", "pair": [1, 2]}).pair == (1, 2)
    assert errors_of(job, {"when": "2026-01-31T12:00:00Z", "pair": ["1", 2]}) == {
        "payload.pair.0": ["Expected a whole number."]
    }


def test_the_words_of_a_models_own_validator_are_kept():
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, value):
            if value % 2:
                raise ValueError("must be even")
            return value

    assert errors_of(declare(Even), {"number": 3}) == {"payload.number": ["must be even"]}


def test_a_fault_in_a_models_validator_is_a_problem_of_the_payload_and_is_logged(caplog):
    class Faulty(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def _fault(cls, value):
            raise KeyError(value)

    assert errors_of(declare(Faulty), {"number": 3}) == {"payload": ["It could not be checked: KeyError."]}
    assert "the validation of Faulty failed by itself" in caplog.text


def test_aliases_are_the_names_that_are_known():
    class Aliased(BaseModel):
        number: int = Field(alias="numero")

    job = declare(Aliased)
    assert job.parse({"numero": 3}).number == 3
    assert errors_of(job, {"numero": 1, "numeroo": 2}) == {
        "payload.numeroo": ["There is no such field; did you mean numero?"]
    }


def test_a_handler_without_a_payload_takes_an_empty_object_only():
    @job_type("payload.none")
    def handler(ctx): ...

    job = catalogue.get("payload.none")
    assert job.parse({}) == {}
    assert errors_of(job, {"x": 1}) == {"payload.x": ["There is no such field."]}
    assert errors_of(job, []) == {"payload": ["Expected an object."]}
    assert job.schema() == {"type": "object", "properties": {}, "additionalProperties": False}


def test_the_schema_excludes_unknown_fields_on_every_level_but_not_free_keys():
    class Free(BaseModel):
        labels: dict[str, int] = {}
        items: list[Item] = []

    schema = declare(Free).schema()
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Item"]["additionalProperties"] is False
    assert schema["properties"]["labels"]["additionalProperties"] == {"type": "integer"}


def test_a_model_that_json_schema_has_no_words_for_is_shown_as_an_object():
    class Strange(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        number: int = 1
        thing: slice | None = None

    job = declare(Strange)
    assert job.schema() == {"type": "object", "title": "Strange"}
    assert job.parse({"number": 2}).number == 2


def test_an_unknown_type_has_no_schema():
    with pytest.raises(UnknownType):
        catalogue.schema("no.such.type")
