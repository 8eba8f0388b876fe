"""One cause, one fingerprint: (type, exception class, message without what varies, top own frame).

So that an operator acts on a thousand alike at once. Numbers, ids, quoted text and addresses are removed.
"""

import hashlib
import re

_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE), "<id>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE), "<address>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+"), "<address>"),
    (re.compile(r"'[^'\n]*'|\"[^\"\n]*\""), "<text>"),
    (re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def normalised(message: str) -> str:
    """The first 500 characters of the message with what varies from case to case replaced by its kind."""
    text = message[:500]
    for pattern, kind in _VARYING:
        text = pattern.sub(kind, text)
    return text.strip()


def fingerprint(type_name: str, error_type: str, message: str, frame: str = "") -> str:
    """32 hexadecimal digits that name the cause; `frame` is "module:function" of the topmost own frame."""
    cause = "\x1f".join((type_name, error_type, normalised(message), frame))
    return hashlib.sha256(cause.encode("utf-8", "replace")).hexdigest()[:32]
