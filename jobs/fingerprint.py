"""One cause, one fingerprint: (type, exception class, message without what varies, top own frame).

So that an operator acts on a thousand alike at once. Of a message are removed: quoted text, ids (UUIDs, hashes, tokens,
addresses of memory), URLs and e-mail addresses, absolute paths, and numbers. Each pattern looks at a word once, so that
no message makes this slow.
"""

import hashlib
import re

from jobs.text import CUT

READ = 4000  # characters of a message that are looked at
KEPT = 500  # of what is left then
_VARYING = (
    # Between quotes of one kind, or from one to where the message was cut; an apostrophe within a word is none.
    (re.compile(r"""(?<![\w'])'[^'\n]*(?:'(?!\w)|…\Z)|"[^"\n]*(?:"|…\Z)|`[^`\n]*`|“[^“”\n]*”|«[^«»\n]*»"""), "<text>"),
    (re.compile(r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])", re.IGNORECASE), "<id>"),
    (re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>()\[\]{}'\"]+", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+"), "<address>"),
    (re.compile(r"(?<![\w/\\.~:-])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@%~=-]+){2,}[/\\]?"), "<path>"),
    (re.compile(r"0x[0-9a-f]+|(?<!\w)(?=[a-f]*\d)[0-9a-f]{7,}(?!\w)", re.IGNORECASE), "<id>"),
    (re.compile(r"(?<![^\W_])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}(?![^\W_])"), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def normalised(message: str) -> str:
    """A message with what varies from case to case replaced by its kind: its beginning, of at most KEPT characters."""
    text = message if len(message) <= READ else message[: READ - len(CUT)] + CUT
    for pattern, kind in _VARYING:
        text = pattern.sub(kind, text)
    return text[:KEPT].strip()


def fingerprint(type_name: str, error_type: str, message: str, frame: str = "") -> str:
    """32 hexadecimal digits that name the cause; `frame` is "module:function" of the topmost own frame."""
    cause = "\x1f".join((type_name, error_type, normalised(message), frame))
    return hashlib.sha256(cause.encode("utf-8", "replace")).hexdigest()[:32]
