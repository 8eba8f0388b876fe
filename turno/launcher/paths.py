"""Where the launcher keeps things."""

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_DATA = Path("/var/lib/turno")


@dataclass(frozen=True)
class Project:
    """One copy of the project and the places that belong to it."""

    root: Path = ROOT
    system_data: Path = SYSTEM_DATA

    @property
    def state(self) -> Path:
        """Lock, state and logs of this copy."""
        return self.root / ".turno"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def env_file(self) -> Path:
        return self.root / ".env"

    @property
    def digest(self) -> str:
        """What tells this copy from others on the same machine."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:12]

    def prepare(self) -> None:
        """Make the state and log folders, for this user alone. Raises OSError."""
        for folder in (self.state, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)

    def postgres(self) -> Path:
        """The private PostgreSQL's folder: in the state folder, unless the server could not use it there.

        Run as root the server has a user of its own, who can't reach every project; and some mounts (a
        Windows drive under WSL) keep no modes, without which the server refuses its data.
        """
        if os.geteuid() == 0:
            return self.system_data / self.digest
        if self.state.exists() and stat.S_IMODE(self.state.stat().st_mode) & 0o077:
            with suppress(OSError):
                self.state.chmod(0o700)
            if stat.S_IMODE(self.state.stat().st_mode) & 0o077:
                return Path.home() / ".local/share/turno" / self.digest
        return self.state / "postgres"

    def server(self, name: str) -> Path:
        """The folder of another private server: beside PostgreSQL's in the state folder, else within that one."""
        postgres = self.postgres()
        return (self.state if postgres.parent == self.state else postgres) / name


def venv_python(venv: Path) -> Path:
    """The interpreter of a virtual environment."""
    return venv / "bin" / "python"
