"""The supervisor's log: the form of `workers.logs`, without what that imports, and never waiting for a reader."""

import json
import os
import select
import sys
import time
from contextlib import suppress

LOGGER = "workers.supervision"
LONGEST = 4000  # bytes: a pipe that is said to be writable takes this many without waiting


def say(event: str, level: str = "info", **fields: object) -> None:
    """One line to standard error; dropped when nobody takes it, since nothing may hold the supervisor up."""
    now = time.time()
    if _terminal():
        told = " ".join(f"{key}={value}" for key, value in fields.items())
        line = f"{time.strftime('%H:%M:%S', time.localtime(now))} {level:7} {event} {told}".rstrip()
    else:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}+00:00"
        line = json.dumps({"at": at, "level": level, "event": event, "logger": LOGGER, **fields}, separators=(",", ":"))
    with suppress(OSError, ValueError):
        poll = select.poll()
        poll.register(2, select.POLLOUT)
        if any(ready & select.POLLOUT for _, ready in poll.poll(0)):
            os.write(2, line.encode(errors="replace")[:LONGEST] + b"\n")


def _terminal() -> bool:
    with suppress(AttributeError, ValueError, OSError):
        return sys.stderr.isatty()
    return False
