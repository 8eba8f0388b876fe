"""Text as the database can keep it: no NUL, no lone surrogate, no longer than its limit; and words for numbers."""

import signal

CUT = "…"


def clean(value: object, limit: int, *, one_line: bool = False) -> str:
    """`value` as storable text of at most `limit` characters; a longer one ends in "…".

    NUL is removed (PostgreSQL refuses it), lone surrogates become "?" (UTF-8 has none); `one_line` folds
    every run of white space to one blank.
    """
    text = str.replace(str(value), "\x00", "")  # (which a subclass may have words of its own for)
    if one_line:
        text = " ".join(text.split())
    if len(text) > limit:
        text = text[: limit - len(CUT)] + CUT
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def first_line(error: object) -> str:
    """The first line of an error's text: PostgreSQL's further ones are details and hints."""
    return str(error).split("\n", 1)[0]


def signal_name(number: int) -> str | None:
    """The name of a signal, such as SIGKILL; None for one that has none (the real-time ones)."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
