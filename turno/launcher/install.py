"""The virtual environment: made once, filled from hash-pinned requirements, again only when they changed.

Runs on the standard library of whatever Python the shell found.
"""

import hashlib
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from turno.launcher.errors import LauncherError, no_permission, no_space
from turno.launcher.paths import venv_python
from turno.launcher.processes import tied
from turno.launcher.say import Console, _

OLDEST = (3, 12)
FRESH_SPACE, UPDATE_SPACE = 400, 100  # MB that an installation takes at its peak, about
NETWORK_SIGNS = (
    "NewConnectionError",
    "ConnectTimeout",
    "Read timed out",
    "Temporary failure in name resolution",
    "No matching distribution found",
    "ProxyError",
    "SSLError",
)


def check_python() -> None:
    """Raises LauncherError when the Python that runs this is too old."""
    if sys.version_info < OLDEST:
        raise LauncherError(
            _("Turno needs Python 3.12 or newer, and this one is {version}.").format(version=sys.version.split()[0])
        )


def check_space(folder: Path, megabytes: int) -> None:
    """Raises LauncherError when the disk of a folder has less free than this."""
    free = shutil.disk_usage(folder).free // 2**20
    if free < megabytes:
        raise LauncherError(
            _("Not enough space on the disk that holds {folder}: {free} MB free, {needed} MB needed.").format(
                folder=folder, free=free, needed=megabytes
            )
        )


def ensure(venv: Path, requirements: Sequence[Path], log: Path, console: Console, *, exact: bool = False) -> bool:
    """Make the environment and install the requirements. False when that was done before.

    `exact` makes it anew when the requirements changed, so that nothing is in it which they don't name.
    Raises LauncherError with a sentence, OSError.
    """
    stamp = venv / f"installed-{requirements[0].stem}"
    wanted = _checksum(requirements)
    if stamp.exists() and stamp.read_text() == wanted and _works(venv_python(venv)):
        return False
    fresh = (exact and stamp.exists()) or not _works(venv_python(venv), "-m", "pip", "--version")
    check_space(venv.parent, FRESH_SPACE if fresh else UPDATE_SPACE)
    if fresh:
        console.progress(_("Creating the virtual environment"))
        _make(venv, log)
    stamp.unlink(missing_ok=True)
    _install(venv_python(venv), requirements, log, console)
    stamp.write_text(wanted)
    return True


def _checksum(requirements: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in requirements:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _works(python: Path, *arguments: str) -> bool:
    probe = list(arguments) or ["-c", f"import sys; sys.exit(sys.version_info < {OLDEST})"]
    try:
        return subprocess.run([python, *probe], capture_output=True, check=False).returncode == 0
    except OSError:  # there is none, or it is a link to where this user may not go
        return False


def _make(venv: Path, log: Path) -> None:
    if venv.exists() or venv.is_symlink():
        if not (venv / "pyvenv.cfg").exists() and any(venv.iterdir()):
            raise LauncherError(
                _("{folder} is not a virtual environment: move it away and start again.").format(folder=venv)
            )
        shutil.rmtree(venv)
    base = getattr(sys, "_base_executable", sys.executable)  # not the environment that is being replaced
    made = subprocess.run([base, "-m", "venv", venv], capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return
    told = made.stdout + made.stderr
    log.write_text(told, encoding="utf-8")
    shutil.rmtree(venv, ignore_errors=True)
    if "ensurepip" in told and "No space left" not in told:
        version = ".".join(map(str, sys.version_info[:2]))
        raise LauncherError(
            _("{python} can't create virtual environments: install its venv (Debian: python{version}-venv).")
            .format(python=sys.executable, version=version)
        )  # fmt: skip
    raise _failure(told, venv, log)


def _install(python: Path, requirements: Sequence[Path], log: Path, console: Console) -> None:
    total = sum(len(re.findall(r"^[a-z0-9].*==", path.read_text(), flags=re.M)) for path in requirements)
    command: list[str | Path] = [python, "-m", "pip", "install", "--require-hashes", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off"]
    for path in requirements:
        command += ["-r", path]
    console.progress(_("Installing {total} packages").format(total=total))
    seen = 0
    with (
        log.open("w", encoding="utf-8") as record,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C comes through us, once: then pip removes what it unpacked
            preexec_fn=tied(signal.SIGINT),  # noqa: PLW1509  a second pip beside an orphan would spoil the folder
        ) as pip,
    ):
        try:
            for line in pip.stdout or ():
                record.write(line)
                if line.startswith("Collecting "):
                    seen = min(total, seen + 1)
                    console.progress(_("Getting packages: {seen} of {total}").format(seen=seen, total=total))
                elif line.startswith("Installing collected packages"):
                    console.progress(_("Installing {total} packages").format(total=seen))
        except BaseException:
            pip.send_signal(signal.SIGINT)
            raise
    if pip.returncode:
        raise _failure(log.read_text(encoding="utf-8"), python.parent.parent, log)


def _failure(told: str, venv: Path, log: Path) -> LauncherError:
    if "No space left on device" in told or "Disk quota exceeded" in told:
        return LauncherError(no_space(venv))
    if "Permission denied" in told:
        return LauncherError(no_permission(venv))
    if any(sign in told for sign in NETWORK_SIGNS):
        return LauncherError(
            _("The packages could not be downloaded: check the network or pip's settings (log: {log}).").format(log=log)
        )
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["?"]
    return LauncherError(
        _("The packages could not be installed: {reason} (log: {log})").format(reason=errors[-1], log=log)
    )
