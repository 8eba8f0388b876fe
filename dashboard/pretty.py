"""JSON for the eye: indented, keys apart from values, bounded in depth and length, secrets masked. Never recurses deep.

The pieces are plain text, escaped by the template: what a payload holds is shown literally.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from jobs.jsonvalues import LARGEST
from jobs.queries.payloadtext import DEFINED, is_secret

DEEPEST = 64
PIECES = 4000
TEXT = 4000
WIDE = 60
DIGITS = 40
MASK = "••••••"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text; `kind` is "k" for a key, "m" for what stands in for something else, "" for the rest."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Pieces in order; `cut`: not all of it is there."""

    pieces: list[Piece]
    cut: bool

    @property
    def text(self) -> str:
        """All of it as one text."""
        return "".join(piece.text for piece in self.pieces)


class _Writer:
    """Collects pieces up to the bound."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.cut = False

    def full(self) -> bool:
        if len(self.pieces) >= PIECES:
            self.cut = True
        return self.cut

    def say(self, text: str, kind: str = "") -> None:
        if not kind and self.pieces and not self.pieces[-1].kind and len(self.pieces[-1].text) < TEXT:
            text = self.pieces.pop().text + text
        self.pieces.append(Piece(kind, text))


def pretty(value: Any, schema: Mapping[str, Any] | None = None) -> Shown:
    """`value` (as `json.loads` makes it) as pieces; `schema` is its JSON schema, whose secret fields are masked."""
    writer = _Writer()
    _write(writer, value, schema or {}, schema or {}, 0)
    if writer.cut:
        writer.say("\n" + _("… (cut here: copy or ask the API for all of it)"), "m")
    return Shown(writer.pieces, writer.cut)


def _write(writer: _Writer, value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], level: int) -> None:
    schema = _resolved(schema, root)
    if is_secret(schema) and value is not None:
        writer.say(f'"{MASK}"', "m")
    elif isinstance(value, dict):
        _members(writer, ((key, member, _of_key(schema, key)) for key, member in value.items()), "{}", root, level)
    elif isinstance(value, list):
        plain = not is_secret(_resolved(_items(schema, 0), root))
        if plain and (short := _short(value)) is not None:
            writer.say(short)
            return
        _members(writer, ((None, member, _items(schema, n)) for n, member in enumerate(value)), "[]", root, level)
    else:
        _scalar(writer, value)


def _members(
    writer: _Writer,
    members: Iterator[tuple[str | None, Any, Mapping[str, Any]]],
    brackets: str,
    root: Mapping[str, Any],
    level: int,
) -> None:
    first = next(members, None)
    if first is None:
        writer.say(brackets)
        return
    if level >= DEEPEST:
        writer.say(f"{brackets[0]} … {brackets[1]}", "m")
        writer.cut = True
        return
    writer.say(brackets[0])
    indent = "\n" + "  " * (level + 1)
    member: tuple[str | None, Any, Mapping[str, Any]] | None = first
    while member is not None and not writer.full():
        key, value, schema = member
        writer.say(indent)
        if key is not None:
            writer.say(_quoted(key), "k")
            writer.say(": ")
        _write(writer, value, schema, root, level + 1)
        member = next(members, None)
        if member is not None:
            writer.say(",")
    if not writer.cut:
        writer.say("\n" + "  " * level + brackets[1])


def _scalar(writer: _Writer, value: Any) -> None:
    if isinstance(value, str) and len(value) > TEXT:
        writer.say(_quoted(value[:TEXT])[:-1])
        writer.say(_("… (%(count)d more characters)") % {"count": len(value) - TEXT}, "m")
        writer.say('"')
    else:
        writer.say(_literal(value))


def _literal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**DIGITS:
        # jsonb writes 1e308 with all its zeros: where a double says the same number, that is read more easily.
        number = repr(float(value)) if abs(value) <= LARGEST else ""
        return number if number and Decimal(number) == value else str(value)
    return _quoted(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    """As JSON writes it; what has no shape or changes the direction of the text is written as an escape."""
    return "".join(c if c.isprintable() or c == " " else _escape(c) for c in json.dumps(text, ensure_ascii=False))


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def _short(values: list[Any]) -> str | None:
    """A list of a few small values on one line; None for another one."""
    if not values or any(isinstance(v, (dict, list)) or (isinstance(v, str) and len(v) > WIDE) for v in values[:30]):
        return None
    if len(values) > 30:
        return None
    line = "[" + ", ".join(_literal(value) for value in values) + "]"
    return line if len(line) <= WIDE else None


def _resolved(schema: Any, root: Mapping[str, Any], steps: int = 8) -> Mapping[str, Any]:
    """The schema itself: references followed; of alternatives a secret one, else the first with fields."""
    if not isinstance(schema, Mapping) or steps == 0:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(DEFINED) and not is_secret(schema):
        return _resolved(root.get("$defs", {}).get(reference.removeprefix(DEFINED)), root, steps - 1)
    options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if is_secret(schema) or not isinstance(options, list) or "properties" in schema:
        return schema
    inner = [_resolved(option, root, steps - 1) for option in options[:20]]
    return next((o for o in inner if is_secret(o)), None) or next((o for o in inner if o.get("properties")), schema)


def _of_key(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    fields = schema.get("properties")
    if isinstance(fields, Mapping) and isinstance(fields.get(key), Mapping):
        return dict(fields[key])
    more = schema.get("additionalProperties")
    return more if isinstance(more, Mapping) else {}


def _items(schema: Mapping[str, Any], place: int) -> Mapping[str, Any]:
    first = schema.get("prefixItems")
    if isinstance(first, list) and place < len(first) and isinstance(first[place], Mapping):
        return dict(first[place])
    items = schema.get("items")
    return items if isinstance(items, Mapping) else {}
