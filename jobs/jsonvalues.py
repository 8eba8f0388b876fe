"""JSON as Turno accepts it: limits of a value, its compact text, a hash that key order doesn't change, a strict parser.

What is refused, each with the path where it stands: NUL characters (jsonb has none), lone surrogates, NaN and
Infinity, numbers beyond a double's range, keys that are not text, values that JSON does not have, nesting beyond the
limit. Nothing here recurses, so that no depth of input raises RecursionError. Kept exactly: whole numbers of any
length within a double's range, 1e308, 5e-324; -0.0 is kept as a number equal to 0. Of a key that stands twice in one
object the last value holds, as in jsonb. A tuple counts as a list.
"""

import hashlib
import json
import re
import sys
from typing import Any

import orjson
from django.utils.translation import gettext as _

from jobs.errors import Invalid, PayloadTooLarge, Refused

LARGEST = int(sys.float_info.max)
USUAL = 1e300  # numbers below it need no closer look
DEEPEST = 1024  # orjson parses no deeper
# Of all bytes ASCII digits become 0, all others a space.
_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG = b"0" * 19  # so many digits may be more than 64 bits hold
_DIGIT, _DIGIT_BYTE = re.compile("[0-9]"), re.compile(rb"[0-9]")
_PLAIN, _NUMBERS = frozenset({bool, type(None)}), frozenset({int, float})

# Where a container stands: the link of the container around it and its key there; None for the outermost.
type Link = tuple["Link", str | int] | None


class JsonProblem(ValueError):
    """What is wrong with a value; `path` says where, from the value's own root (empty for the root itself)."""

    def __init__(self, path: str, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.too_large = too_large

    def refusal(self, root: str) -> Refused:
        """The same as an answer for a caller, its error under `root` and the path, e.g. "payload.rows.3"."""
        field = f"{root}.{self.path}" if self.path else root
        kind = PayloadTooLarge if self.too_large else Invalid
        return kind(self.message, errors={field: [self.message]})


def path_of(link: Link, *last: str | int) -> str:
    """The dotted path of a link, "rows.3.name"; characters that can't be shown are escaped."""
    parts = list(last)
    while link is not None:
        link, key = link
        parts.insert(0, key)
    return ".".join(_shown(str(part)) for part in parts)


def _shown(part: str) -> str:
    text = part if len(part) <= 60 else f"{part[:57]}..."
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _text_problem(text: str) -> str | None:
    if "\0" in text:
        return _("Text with a NUL character can't be stored.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _("Text with half of a surrogate pair is not valid Unicode.")
    return None


def _scalar_problem(value: Any) -> str | None:
    """What is wrong with a value that is neither list nor object."""
    if isinstance(value, str):
        return _text_problem(value)
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        return None if value - value == 0 else _("NaN and Infinity are not JSON numbers.")
    if isinstance(value, int):
        return None if -LARGEST <= value <= LARGEST else _("The number is too large: at most ±1.8e308.")
    return _("%(type)s is not a JSON value.") % {"type": type(value).__name__}


def _children(container: Any, link: Link) -> Any:
    """(key, value) of each member; refuses keys that are not text."""
    if not isinstance(container, dict):
        return enumerate(container)
    for key in container:
        if type(key) is str and key.isascii() and "\0" not in key:
            continue
        if not isinstance(key, str):
            what = {"type": type(key).__name__}
            raise JsonProblem(path_of(link, repr(key)), _("A key must be text, not %(type)s.") % what)
        if problem := _text_problem(key):
            raise JsonProblem(path_of(link, key), problem)
    return container.items()


def check(value: Any, *, depth: int, max_bytes: int) -> None:
    """Refuse what can't be stored. A scalar has depth 0, a list or object one more than what it holds.

    Raises JsonProblem with the first problem found. Also ends for values that contain themselves.
    """
    if not isinstance(value, (dict, list, tuple)):
        if problem := _scalar_problem(value):
            raise JsonProblem("", problem)
        return
    members = 0
    stack: list[tuple[Any, Link, int]] = [(value, None, 1)]
    while stack:
        container, link, level = stack.pop()
        if level > depth:
            raise JsonProblem(path_of(link), too_deep(depth))
        members += len(container)
        if members * 2 > max_bytes:  # each takes two bytes at least; lists that share their members multiply fast
            raise too_large(max_bytes)
        for key, member in _children(container, link):
            kind = type(member)  # what most members are is seen at once: large payloads have thousands
            if kind is str:
                if member.isascii() and "\0" not in member:
                    continue
            elif kind in _PLAIN or (kind in _NUMBERS and -USUAL < member < USUAL):  # NaN is not
                continue
            elif isinstance(member, (dict, list, tuple)):
                stack.append((member, (link, key), level + 1))
                continue
            if problem := _scalar_problem(member):
                raise JsonProblem(path_of(link, key), problem)


def too_deep(depth: int) -> str:
    """What is said of a value with more levels than `depth`."""
    return _("Nested too deeply: at most %(depth)d levels.") % {"depth": depth}


def too_large(max_bytes: int) -> JsonProblem:
    """The problem of a value whose JSON has more than `max_bytes` bytes."""
    message = _("Too large: at most %(limit)d bytes of UTF-8 JSON.") % {"limit": max_bytes}
    return JsonProblem("", message, too_large=True)


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """Compact UTF-8 JSON of a checked value."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None)
    except TypeError:  # whole numbers over 64 bits, subclasses, more than 254 levels
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
        return text.encode()


def encode(value: Any, *, depth: int, max_bytes: int) -> bytes:
    """Compact UTF-8 JSON of any Python value, or JsonProblem when `check` or the size in bytes refuses it."""
    check(value, depth=depth, max_bytes=max_bytes)
    raw = dumps(value)
    if len(raw) > max_bytes:
        raise too_large(max_bytes)
    return raw


def canonical_hash(value: Any) -> str:
    """SHA-256 (hex) of a checked value's JSON with sorted keys: neither key order nor white space changes it."""
    return hashlib.sha256(dumps(value, sort_keys=True)).hexdigest()


def loads(raw: bytes) -> Any:
    """Parse one JSON document of UTF-8 bytes strictly, to DEEPEST levels; whole numbers keep all their digits.

    Raises Invalid (field "body") naming what is wrong and where: syntax, NaN literals, a second document, a byte
    order mark, invalid UTF-8, numbers that no double holds, nesting beyond DEEPEST.
    """
    try:
        value = orjson.loads(raw)
        # orjson makes floats of whole numbers over 64 bits.
        return json.loads(raw) if has_long_number(raw) else value
    except orjson.JSONDecodeError as error:
        message = _syntax_problem(raw, error)
    except RecursionError:  # json's own limit, which depends on the Python and on the caller's depth
        message = _("The body is nested too deeply.")
    raise Invalid(message, errors={"body": [message]})


def has_long_number(text: str | bytes) -> bool:
    """Whether nineteen ASCII digits stand in a row anywhere in it: of such whole numbers orjson may make floats.

    A row of nineteen has one at one of every nineteen places: where those hold no digit, as in most texts, the rest is
    not looked at. (A regular expression for such a row would take longer than the parser.)
    """
    if isinstance(text, str):
        return _DIGIT.search(text[18::19]) is not None and _LONG in text.encode(errors="replace").translate(_DIGITS)
    return _DIGIT_BYTE.search(text[18::19]) is not None and _LONG in text.translate(_DIGITS)


def _syntax_problem(raw: bytes, error: json.JSONDecodeError) -> str:
    """One sentence of ours for an error of the parser's."""
    if not raw.strip():
        return _("The body is empty; expected JSON.")
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return _("The body begins with a byte order mark; expected UTF-8 without one.")
    where = {"line": error.lineno, "column": error.colno}
    reasons = {
        "str is not valid UTF-8": _("The body is not valid UTF-8."),
        "depth limit": _("The body is nested too deeply."),
        "number is infinity": _("A number is too large (line %(line)d, column %(column)d).") % where,
        "unexpected content after": _("More than one JSON document (line %(line)d, column %(column)d).") % where,
    }
    for start, sentence in reasons.items():
        if error.msg.startswith(start):
            return sentence
    if error.doc[error.pos :].lstrip("-").startswith(("NaN", "Infinity")):
        return _("NaN and Infinity are not JSON numbers (line %(line)d, column %(column)d).") % where
    return _("Not valid JSON (line %(line)d, column %(column)d).") % where
