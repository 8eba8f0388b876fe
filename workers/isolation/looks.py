"""Looks at a process from outside: its state, what it does with signals, its memory and the peak of that."""

import os
import resource
from contextlib import suppress
from typing import NamedTuple


def forget_peak() -> bool:
    """Begin to measure the peak of memory anew; whether the system lets us."""
    try:
        file = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"5")
        finally:
            os.close(file)
    except OSError:
        return False
    return True


def peak_so_far(*, forgets: bool) -> int:
    """Bytes: where no more than this is told of this process when it ends, that was not the last job's.

    It is told of the process, which can begin anew (`forgets`), and of those that it has reaped, which can't.
    """
    who = (resource.RUSAGE_CHILDREN,) if forgets else (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    return max(resource.getrusage(one).ru_maxrss for one in who) * 1024


class Look(NamedTuple):
    """A process seen from outside: its state (a letter of the system's), resident memory now and at most, in bytes,
    and what it does with signals."""

    state: str = ""
    memory: int = 0
    peak: int = 0
    signals: bytes = b""


def look(pid: int | str = "self") -> Look:
    """Look at a process; zeros where nothing can be told of it, as of one that has ended."""
    with suppress(OSError, ValueError, IndexError):
        file = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(file, 8192)
        finally:
            os.close(file)
        state = text[text.index(b"State:") + 6 :].split(None, 1)[0].decode()
        peak, now = (_kilobytes(text, name) * 1024 for name in (b"VmHWM:", b"VmRSS:"))
        return Look(state, now, peak, text[text.index(b"SigBlk:") + 7 : text.index(b"CapInh:")])
    return Look()


def _kilobytes(text: bytes, name: bytes) -> int:
    after = text.index(name) + len(name)
    return int(text[after : text.index(b"kB", after)])
