"""Which process this is: boot id, pid namespace, pid and start time, as the kernel knows them."""

import os
import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from uuid import UUID

from jobs.ids import new_id
from workers import protocol, tree

CAP_SYS_PTRACE = 1 << 19  # of the capabilities, as /proc tells them: in a container root often has it not
PF_KTHREAD = 0x00200000  # of a process's flags


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


def worker_id(supervised: bool) -> UUID:
    """The id of this process's worker. `supervised`: as its supervisor gave it; else, or where that is none, a new one.

    From here on it stands in the environment for whatever handlers start.
    """
    given = os.environ.get(protocol.WORKER_VARIABLE, "")
    found = UUID(given) if supervised and protocol.is_worker_id(given) else new_id()
    os.environ[protocol.WORKER_VARIABLE] = str(found)
    return found


def start_time(pid: int) -> str:
    """When the process started, in the kernel's ticks since boot; empty where that can't be told."""
    return _stat(pid, 19)


def of_the_kernel(pid: int) -> bool:
    """Whether it is a thread of the kernel, which no program has started."""
    return bool(int(_stat(pid, 6) or 0) & PF_KTHREAD)


def _stat(pid: int, field: int) -> str:
    fields = tree.stat(pid)
    return fields[field] if fields else ""


def sees_itself() -> bool:
    """Whether /proc shows the processes of this process's own namespace; else what it says of a pid is another's."""
    return _link("/proc/self") == str(os.getpid())


def sees_everybody() -> bool:
    """Whether this process may look into the processes of all users, as root may, unless that was taken from it."""
    for line in _read("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & CAP_SYS_PTRACE)
    return os.geteuid() == 0


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
