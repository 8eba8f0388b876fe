"""What a killed start left running: recognised by pid and start time, ended before the next start."""

import os
import signal
import sys
import time
from contextlib import suppress

from turno.launcher import patience
from turno.launcher.paths import Project
from turno.launcher.processes import Identity, alive, end
from turno.launcher.state import State, state_path

POSTGRES = "postgres"
KILLED = 5.0  # seconds for a killed process to be gone
TOLD = sys.platform == "linux"  # the death of their launcher told them to stop; told again they would hurry


def leftovers(project: Project) -> dict[str, Identity]:
    """The recorded processes that still live, by name. Raises OSError."""
    recorded = State.read(state_path(project)).processes
    return {name: identity for name, identity in recorded.items() if alive(identity)}


def end_leftovers(project: Project) -> list[Identity]:
    """End the recorded processes that still live, the database last. Returns them. Raises OSError.

    They were told to stop when their launcher died, and get the time from now on that they would have had then.
    """
    left, seconds = leftovers(project), State.read(state_path(project)).seconds
    others = {name: identity for name, identity in left.items() if name != POSTGRES}
    began = time.monotonic()
    for identity in others.values():
        if not TOLD:
            with suppress(ProcessLookupError):
                os.kill(identity.pid, signal.SIGTERM)
    for name, identity in others.items():
        limit = began + seconds.get(name, patience.UNKNOWN)
        while alive(identity) and time.monotonic() < limit:
            time.sleep(0.05)
        end(identity, [(signal.SIGKILL, KILLED)])
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(identity.pid, signal.SIGKILL)  # each leads a group of its own: nothing of it stays
    if POSTGRES in left:
        end(left[POSTGRES], [(signal.SIGINT, patience.DATABASE), (signal.SIGKILL, KILLED)])
    state_path(project).unlink(missing_ok=True)
    return list(left.values())
