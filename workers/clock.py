"""The clock of deadlines: it goes on while the machine sleeps, so that a thawed process knows it is late."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds since the machine started, sleep included where the system counts it (Linux)."""
    return time.clock_gettime(_CLOCK)
