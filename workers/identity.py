"""Which process this is: boot id, pid namespace, pid and start time, as the kernel knows them."""

import os
import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


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
    stat = _read(f"/proc/{pid}/stat")
    # The command's name may hold blanks and parentheses: count the fields from the last ")".
    return stat.rpartition(")")[2].split()[19] if stat else ""


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
