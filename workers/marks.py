"""Whose a process is, by the variables that its program was started with: a fork keeps them, only an exec gives others.

Standard library only: the supervisor goes by them.
"""

import os
import time
from contextlib import suppress

from workers.protocol import CHILD_VARIABLE, FD_VARIABLE, WORKER_VARIABLE

LOOKS, PAUSE = 3, 0.002  # seconds: at an environment that is empty while its process becomes another program


def of_workers_handlers(pid: int, worker_id: str) -> bool:
    """Whether the process runs a program that a handler in the worker itself has started, directly or not.

    Not one that the worker forked and that went on in the worker's own program, and nothing that came from a child
    process or from the trial of a handler module. What can't be seen is not. Raises OSError when no file can be opened.
    """
    try:
        variables = environment(pid)
    except PermissionError:
        return False
    others = (f"{FD_VARIABLE}=".encode(), f"{CHILD_VARIABLE}=".encode())
    return f"{WORKER_VARIABLE}={worker_id}".encode() in variables and not any(v.startswith(others) for v in variables)


def environment(pid: int) -> frozenset[bytes]:
    """The variables that the process's program was started with, each NAME=value; none when it is gone.

    Raises PermissionError when they can't be seen from here, and OSError when no file can be opened just now.
    """
    with suppress(FileNotFoundError, ProcessLookupError):
        for _ in range(LOOKS):
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123  (pathlib is large)
                text = file.read()
            if text or not os.path.exists(f"/proc/{pid}/exe"):  # noqa: PTH110  (a thread of the kernel has no program)
                return frozenset(text.split(b"\0"))
            time.sleep(PAUSE)
    return frozenset()
