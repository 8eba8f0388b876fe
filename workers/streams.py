"""The standard streams: written out before a process forks or ends, and blocking as they were."""

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn

NUMBERS = (0, 1, 2)


def flush_streams() -> None:
    """Write out what the handler printed: the process may end without doing so."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def blocking_streams() -> list[bool | None]:
    """Whether reading and writing descriptors 0 to 2 waits; None for one that is closed."""
    found: list[bool | None] = []
    for number in NUMBERS:
        try:
            found.append(os.get_blocking(number))
        except OSError:
            found.append(None)
    return found


def block_streams(blocking: list[bool | None]) -> None:
    """Make them as they were: other processes, with the same files, have been changed too."""
    for number, before, now in zip(NUMBERS, blocking, blocking_streams(), strict=True):
        if before is not None and now is not None and before != now:
            with suppress(OSError):
                os.set_blocking(number, before)


def end_at_once(code: int) -> NoReturn:
    """End this process, whatever its threads are at."""
    try:
        logging.shutdown()
        flush_streams()
    finally:
        os._exit(code)
