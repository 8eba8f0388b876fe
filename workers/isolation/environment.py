"""The environment variables of this process as the C library has them, which is what programs that it starts get.

`os.environ` is Python's picture of them: `os.putenv` and libraries in C change them without its knowledge.
"""

import ctypes
import os
import time
from functools import cache
from typing import Any


class Environment:
    """The variables as they are now."""

    def __init__(self) -> None:
        self._of_python = dict(_of_python())
        self._of_c = frozenset(_of_c())
        self._list = _List()

    def put_back(self) -> None:
        """Make both what they were when this was made."""
        now = _of_python()
        if now != self._of_python:
            now.clear()
            now.update(self._of_python)
        if self._list.holds():
            return
        self._put_back_of_c()
        self._list = _List()

    def _put_back_of_c(self) -> None:
        entries = frozenset(_of_c())
        if entries == self._of_c:
            return
        for entry in entries - self._of_c:
            name = entry.partition(b"=")[0]
            if name:  # (a program may be started with an entry that has none; nothing can unset that)
                os.unsetenv(name)
        for entry in self._of_c - entries:
            name, _, value = entry.partition(b"=")
            if name:
                os.putenv(name, value)
        time.tzset()  # what was read from TZ


class _List:
    """The C library's list as it is now: where it is, and where each text is. Whoever sets or unsets a variable, in
    Python or in C, puts another text into it, or another list in its place; to read all texts takes far longer."""

    def __init__(self) -> None:
        self._place = _place()
        self._size = (len(_of_c()) + 1) * ctypes.sizeof(ctypes.c_void_p)
        self._texts = b"" if self._place is None else ctypes.string_at(self._place, self._size)

    def holds(self) -> bool:
        """Whether it is the same; not where there is none to look at. (A list in its place only ever grows.)"""
        if self._place is None or _place() != self._place:
            return False
        return ctypes.string_at(self._place, self._size) == self._texts


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
