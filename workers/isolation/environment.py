"""The environment variables of this process as the C library has them, which is what programs that it starts get.

`os.environ` is Python's picture of them: `os.putenv` and libraries in C change them without its knowledge.
"""

import ctypes
import os
import time
from functools import cache
from typing import Any


class Environment:
    """The variables as they are now. Their texts are copied to where only the C library has them: one that C code gave
    it with `putenv` stays that code's own, and may become another without a sign."""

    def __init__(self) -> None:
        self._of_python = dict(_of_python())
        self._of_c = _of_c()
        self._set_anew(frozenset())
        self._of_c = _of_c()  # (each name once)
        self._list = _List(self._of_c)

    def put_back(self) -> None:
        """Make both what they were when this was made."""
        now = _of_python()
        if now != self._of_python:
            now.clear()
            now.update(self._of_python)
        if self._list.holds():
            return
        self._set_anew(frozenset(self._list.places()))
        time.tzset()  # what was read from TZ
        self._list = _List(_of_c())

    def _set_anew(self, known: frozenset[int]) -> None:
        """Replace what is not at one of the known places, or says something else."""
        meant, texts = frozenset(self._of_c), _of_c()
        unknown = {
            text.partition(b"=")[0]
            for place, text in zip(_List(texts).places(), texts, strict=False)
            if place not in known or text not in meant
        }
        # (A program may be started with an entry that has no name, or is one alone; nothing can unset those.)
        for name in unknown - {b""}:
            os.unsetenv(name)
        left = {text for text in texts if text.partition(b"=")[0] not in unknown}
        for text in reversed(self._of_c):  # of two with a name, the first counts
            name, sign, value = text.partition(b"=")
            if name and sign and text not in left:
                os.putenv(name, value)


class _List:
    """The C library's list as it is now: where it is, and where each of its `texts` is. Whoever sets or unsets a
    variable, in Python or in C, puts another text into it, or another list in its place; to read all texts takes far
    longer."""

    def __init__(self, texts: list[bytes]) -> None:
        self._place = _place()
        self._size = (len(texts) + 1) * ctypes.sizeof(ctypes.c_void_p)
        self._places = b"" if self._place is None else ctypes.string_at(self._place, self._size)

    def holds(self) -> bool:
        """Whether it is the same; not where there is none to look at. (A list in its place only ever grows.)"""
        if self._place is None or _place() != self._place:
            return False
        return ctypes.string_at(self._place, self._size) == self._places

    def places(self) -> list[int]:
        """Where the texts are, in their order; 0 comes last."""
        return memoryview(self._places).cast("P").tolist()


def _place() -> int | None:
    entries = _pointer()
    return ctypes.cast(entries, ctypes.c_void_p).value if entries else None


def _of_python() -> Any:
    """The dict behind `os.environ`: the variables without a copy of each text, and without the C library's part."""
    return getattr(os.environ, "_data", {})


def _of_c() -> list[bytes]:
    """NAME=value, each."""
    found: list[bytes] = []
    entries = _pointer()
    while entries and (entry := entries[len(found)]) is not None:
        found.append(entry)
    return found


@cache
def _pointer() -> Any:
    """`environ`: a pointer to the list that the C library has at the time it is looked at."""
    try:
        return ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    except (OSError, ValueError, AttributeError):  # no such library, no such name
        return None
