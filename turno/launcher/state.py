"""Who runs this copy of the project: a lock that dies with its holder, and a note of its processes."""

import fcntl
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from turno.launcher.paths import Project
from turno.launcher.processes import Identity, identity_of

INHERITED = "_TURNO_LOCK"  # the lock's descriptor, handed to the virtual environment's Python


class Lock:
    """An exclusive lock on the project's state folder. The file names its holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inherited = False
        self._fd: int | None = None

    def take(self) -> bool:
        """Take the lock, or the one that the process had before exec. False when somebody else has it."""
        inherited = os.environ.pop(INHERITED, "")
        if inherited.isdigit():
            self._fd = int(inherited)
            os.set_inheritable(self._fd, False)
            self.inherited = True
            return True
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        me = identity_of(os.getpid())
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(asdict(me) if me else {}).encode(), 0)
        return True

    def hand_over(self) -> None:
        """Let the program that this process becomes keep the lock."""
        if self._fd is not None:
            os.set_inheritable(self._fd, True)
            os.environ[INHERITED] = str(self._fd)

    def release(self) -> None:
        """Give the lock back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holder(self) -> Identity | None:
        """Who holds the lock now; None when nobody does. Raises OSError."""
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _identity(_loads(os.pread(fd, 4096, 0)))
        else:
            return None
        finally:
            os.close(fd)


@dataclass
class State:
    """What runs: the web address and each process by name, with the seconds that each may take to stop."""

    address: str = ""
    since: float = field(default_factory=time.time)
    ready: bool = False
    processes: dict[str, Identity] = field(default_factory=dict)
    stop_within: float = 0.0  # seconds that an orderly stop of all may take
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "State":
        """The note as it stands, an empty one when there is none or it is damaged."""
        try:
            raw = _loads(path.read_bytes())
        except FileNotFoundError:
            raw = {}
        processes = raw.get("processes")
        found = {
            name: identity
            for name, value in (processes.items() if isinstance(processes, dict) else ())
            if (identity := _identity(value))
        }
        since, within, seconds = raw.get("since"), raw.get("stop_within"), raw.get("seconds")
        return cls(
            address=str(raw.get("address", "")),
            since=since if isinstance(since, float) else 0.0,
            ready=raw.get("ready") is True,
            stop_within=within if isinstance(within, float) else 0.0,
            processes=found,
            seconds={
                str(name): value
                for name, value in (seconds.items() if isinstance(seconds, dict) else ())
                if isinstance(value, float)
            },
        )

    def write(self, path: Path) -> None:
        """Replace the note. Raises OSError."""
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self)), encoding="utf-8")
        fresh.replace(path)


def lock_of(project: Project) -> Lock:
    """The project's lock."""
    return Lock(project.state / "lock")


def state_path(project: Project) -> Path:
    """The project's note of what runs."""
    return project.state / "state.json"


def described(identities: Iterable[Identity]) -> str:
    """Pids for a message."""
    return ", ".join(str(identity.pid) for identity in identities)


def _loads(raw: bytes) -> dict[str, object]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _identity(value: object) -> Identity | None:
    if not isinstance(value, dict) or not isinstance(value.get("pid"), int):
        return None
    return Identity(value["pid"], str(value.get("started", "")))
