"""Which process this is: boot id, pid namespace, pid and start time, as the kernel knows them."""

import os
import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workers import tree

MARKER = "TURNO_WORKER_ID"  # in the environment of whatever a worker's handlers start: the worker's id


def _read(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def _link(path: str) -> str:
    with suppress(OSError):
        return str(Path(path).readlink())
    return ""


@cache
def boot_id() -> str:
    """The id of the machine's current boot, or its name where the system has none."""
    return _read("/proc/sys/kernel/random/boot_id") or platform.node()


@cache
def pid_namespace() -> str:
    """The pid namespace that this process lives in: two containers with one host name and pid 1 differ here."""
    return _link("/proc/self/ns/pid") or "host"


def start_time(pid: int) -> str:
    """When the process started, in the kernel's ticks since boot; empty where that can't be told."""
    return _stat(pid, 19)


def parent(pid: int) -> int:
    """The process's parent; 0 when it has none, or that can't be told."""
    return int(_stat(pid, 1) or 0)


def _stat(pid: int, field: int) -> str:
    stat = _read(f"/proc/{pid}/stat")
    # The command's name may hold blanks and parentheses: count the fields from the last ")".
    return stat.rpartition(")")[2].split()[field] if stat else ""


def sees_itself() -> bool:
    """Whether /proc shows the processes of this process's own namespace; else what it says of a pid is another's."""
    return _link("/proc/self") == str(os.getpid())


def has_ended(pid: int, started: str) -> bool:
    """Whether it is certain that the process of this namespace with this pid and start time has ended.

    One that only waits to be reaped has. What can't be seen (hidden by the system, none of this user's) may live.
    """
    if not started or not sees_itself():
        return False
    now = start_time(pid)
    if now:
        return now != started or not tree.alive(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def host() -> str:
    """The host's name."""
    return platform.node() or "localhost"


@cache
def turno_version() -> str:
    """Turno's version: of the installed package, else of the tree."""
    from jobs.version import VERSION

    with suppress(PackageNotFoundError):
        return version("turno")
    return VERSION


def this_pid() -> int:
    """This process's id."""
    return os.getpid()
