"""Processes by identity: a pid alone may have been given to somebody else since it was written down.

The launcher stands alone (it runs before anything is installed, and in a folder of its own where it is tested), so that
it reads /proc for itself, and not by `workers.tree`.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None  # loaded here: not safe after fork


@dataclass(frozen=True)
class Identity:
    """A process: its pid and when it started, as the system tells it."""

    pid: int
    started: str


def identity_of(pid: int) -> Identity | None:
    """Who runs under this pid; None when nobody does, or only what is left of a dead process (a zombie)."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return None
        return None if fields[0] in "ZX" else Identity(pid, f"{boot}/{fields[19]}")
    shown = _ps(pid, "state=,lstart=")
    state, _, started = shown.partition(" ")
    return Identity(pid, started.strip()) if shown and not state.startswith("Z") else None


def alive(identity: Identity) -> bool:
    """Whether exactly this process still runs."""
    return identity_of(identity.pid) == identity


def command_of(pid: int) -> str:
    """The command line of a process, "" when it is gone."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    return _ps(pid, "args=")


def children(pid: int) -> list[Identity]:
    """The direct children of a process."""
    if sys.platform == "linux":
        pairs = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                pairs.append((int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])))
            except OSError:  # it ended meanwhile
                continue
    else:
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        pairs = [(int(child), int(parent)) for child, parent in map(str.split, listed.splitlines())]
    found = [identity_of(child) for child, parent in pairs if parent == pid]
    return [identity for identity in found if identity]


def _ps(pid: int, columns: str) -> str:
    found = subprocess.run(["ps", "-ww", "-o", columns, "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def end(identity: Identity, steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Send each signal and wait its seconds until the process is gone. False when it outlived them all."""
    for sign, seconds in steps:
        if not alive(identity):
            return True
        try:
            os.kill(identity.pid, sign)
        except ProcessLookupError:
            return True
        deadline = time.monotonic() + seconds
        while alive(identity) and time.monotonic() < deadline:
            time.sleep(0.05)
    return not alive(identity)


def tied(death_signal: signal.Signals) -> Callable[[], None] | None:
    """Popen's `preexec_fn` for a child that gets this signal when this process dies (Linux; else None).

    The kernel ties that to the thread that starts the child, so it is asked for only on the main thread.
    """
    if _libc is None or threading.current_thread() is not threading.main_thread():
        return None
    prctl, parent = _libc.prctl, os.getpid()

    def die_with_parent() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return die_with_parent


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path,
    death_signal: signal.Signals,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    **identity: Any,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that a terminal's Ctrl-C reaches the launcher alone.

    When the launcher dies the child gets `death_signal` (see `tied`). `identity`: Popen's user and groups.
    """
    with log.open("ab") as output, warnings.catch_warnings():
        # Python warns of any code between fork and exec in a process with threads; the above takes no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=tied(death_signal),  # noqa: PLW1509
            **identity,
        )
