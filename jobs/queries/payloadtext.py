"""Payloads as people see them: what of one stands in a list, and whether one says a text.

Fields that a type's schema marks as secret are neither shown nor searched.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import F, Func, JSONField, Q, TextField, Value
from django.db.models.functions import Cast

from jobs.jobtypes import JobType
from jobs.registry import catalogue

TERM = re.compile(r"([^\s=]{1,200})=(\S.*)", re.DOTALL)
HIDDEN = "•••"
DEFINED = "#/$defs/"


def is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether a schema marks its value secret: a SecretStr of Pydantic's, or `json_schema_extra={"secret": True}`."""
    return bool(schema.get("secret") is True or schema.get("writeOnly") is True or schema.get("format") == "password")


def secret_fields(type_name: str) -> frozenset[str]:
    """The payload fields of a type that are secret, or have a secret somewhere inside: a line can't show a part of one.

    Empty for a type that is not registered here.
    """
    registered = catalogue.get(type_name)
    return frozenset() if registered is None else _secrets_of(registered)


@lru_cache(maxsize=1024)
def _secrets_of(registered: JobType) -> frozenset[str]:
    whole = registered.schema()
    definitions = whole.get("$defs", {})
    # A model that holds itself is among its own definitions, and the schema only names it.
    root = definitions.get(str(whole.get("$ref", "")).removeprefix(DEFINED), whole)
    return frozenset(name for name, field in root.get("properties", {}).items() if _hides(field, definitions, set()))


def _hides(schema: Any, definitions: Mapping[str, Any], seen: set[str]) -> bool:
    """Whether anything that a schema is made of is secret; `seen` are the definitions that were looked at."""
    if isinstance(schema, list):
        return any(_hides(one, definitions, seen) for one in schema)
    if not isinstance(schema, dict):
        return False
    if is_secret(schema):
        return True
    name = str(schema.get("$ref", "")).removeprefix(DEFINED)
    if name and name not in seen and _hides(definitions.get(name), definitions, seen | {name}):
        return True
    inner = [schema.get(kind) for kind in ("anyOf", "allOf", "oneOf", "prefixItems", "items", "additionalProperties")]
    properties = schema.get("properties")
    return _hides([*inner, *(properties.values() if isinstance(properties, dict) else ())], definitions, seen)


def _every_secret() -> list[str]:
    return sorted({field for name in catalogue.names() for field in secret_fields(name)})


def _open_payload() -> Any:
    """The payload without what is secret in any type."""
    secrets = _every_secret()
    if not secrets:
        return F("payload")
    names = Value(secrets, output_field=ArrayField(TextField()))
    return Func(F("payload"), names, template="(%(expressions)s)", arg_joiner=" - ", output_field=JSONField())


def _as_terms(text: str) -> Iterator[list[tuple[str, str]]]:
    """Readings of `lote=7 competencia=2026-10`, which is how a list shows fields: one whole, then one by one."""
    whole = TERM.fullmatch(text)
    if whole:
        yield [(whole[1], whole[2])]
        parts = [TERM.fullmatch(part) for part in text.split()]
        if len(parts) > 1 and all(parts):
            yield [(part[1], part[2]) for part in parts if part]


def payload_says(text: str) -> Q:
    """The payload has this text, whatever its case: in a field's name or value, in its JSON, or as `field=value`.

    The text is compared literally: nothing in it is a pattern.
    """
    said = Cast(_open_payload(), TextField())
    found = Q()
    for wording in dict.fromkeys([_inside(text), text]):
        found |= Q(_contains(said, wording))
    for terms in _as_terms(text):
        reading = Q()
        for name, value in terms:
            # As jsonb is written: one blank after the colon, and quotation marks around what is text.
            field = f'"{_inside(name)}": '
            reading &= Q(_contains(said, field + _inside(value))) | Q(_contains(said, f'{field}"{_inside(value)}'))
        found |= reading
    return found


def _inside(text: str) -> str:
    """The text as it stands within JSON: a quotation mark or a backslash is escaped there."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _contains(expression: Any, text: str) -> Any:
    return TextField.get_lookup(TextField(), "icontains")(expression, text)


def without_secrets(type_name: str, payload: Any) -> Any:
    """The payload without the fields that nobody is to see."""
    secrets = secret_fields(type_name)
    if not secrets or not isinstance(payload, dict):
        return payload
    return {name: value for name, value in payload.items() if name not in secrets}


def masked(type_name: str, payload: Any) -> Any:
    """The payload with dots in place of what is secret, or has a secret somewhere inside."""
    secrets = secret_fields(type_name)
    if not secrets or not isinstance(payload, dict):
        return payload
    return {name: HIDDEN if name in secrets and value is not None else value for name, value in payload.items()}


def shown_fields(type_name: str, pairs: str | bytes | None, length: int) -> list[tuple[str, str | None]]:
    """Pairs of a field and its value out of JSON, each value cut at `length`; None in place of a secret one."""
    secrets = secret_fields(type_name)

    def shown(name: str, text: str | None) -> str | None:
        if name in secrets:
            return None
        text = "null" if text is None else text
        return text if len(text) <= length else text[:length] + "…"

    read = json.loads(pairs) if isinstance(pairs, (str, bytes)) else pairs or []
    return [(name, shown(name, text)) for name, text in read]


def preview(fields: Sequence[tuple[str, str | None]]) -> str:
    """Fields as `field=value field=value`; a secret value is dots."""
    return " ".join(f"{name}={HIDDEN if value is None else value}" for name, value in fields)
