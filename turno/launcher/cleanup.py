"""What a killed start left running: recognised by pid and start time, ended before the next start."""

import os
import signal
from contextlib import suppress

from turno.launcher.paths import Project
from turno.launcher.processes import Identity, alive, end
from turno.launcher.state import State, state_path

POSTGRES = "postgres"


def leftovers(project: Project) -> dict[str, Identity]:
    """The recorded processes that still live, by name. Raises OSError."""
    recorded = State.read(state_path(project)).processes
    return {name: identity for name, identity in recorded.items() if alive(identity)}


def end_leftovers(project: Project) -> list[Identity]:
    """End the recorded processes that still live, the database last. Returns them. Raises OSError.

    They were told to stop when their launcher died; what is still there gets ten seconds more.
    """
    left = leftovers(project)
    others = [identity for name, identity in left.items() if name != POSTGRES]
    for identity in others:
        with suppress(ProcessLookupError):
            os.kill(identity.pid, signal.SIGTERM)
    for identity in others:
        end(identity, [(signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)])
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(identity.pid, signal.SIGKILL)  # each leads a group of its own: nothing of it stays
    if POSTGRES in left:
        end(left[POSTGRES], [(signal.SIGINT, 20.0), (signal.SIGKILL, 5.0)])
    state_path(project).unlink(missing_ok=True)
    return list(left.values())
