"""The folder of a private PostgreSQL: the server that fits its data, password, `initdb`, leftovers."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from turno.launcher import folders
from turno.launcher.account import service_account
from turno.launcher.binaries import OLDEST, Binaries, all_binaries, copy_for
from turno.launcher.errors import LauncherError, no_space
from turno.launcher.processes import command_of, end, identity_of, tied
from turno.launcher.say import _

FULL = ("No space left on device", "Check free disk space", "Disk quota exceeded")
ROLE = "turno_private"  # its name tells our address from one that somebody configured


class Cluster:
    """`data`, `password` (mode 600), `port` and `postgres.log` in one folder that the server's user owns."""

    def __init__(self, folder: Path, available: list[Binaries] | None = None) -> None:
        self.folder, self.data, self.log = folder, folder / "data", folder / "postgres.log"
        self.account = service_account()
        self._available = available

    @property
    def password(self) -> str:
        """The role's password, from its file."""
        return (self.folder / "password").read_text().strip()

    def prepare(self, password: str | None, *, durable: bool) -> Binaries:
        """Make the data where there is none, with this password or a random one; the server to start on it.

        Raises LauncherError when no server here fits the data, or it can't be made.
        """
        folders.make(self.folder, self.account)
        binaries = self._reachable(self._choose())
        end_leftover(self.data)
        if not (self.data / "PG_VERSION").exists():
            self._initialise(binaries, password, durable=durable)
        return binaries

    def failure(self, told: str) -> LauncherError:
        """The sentence for what the server said as it refused."""
        if any(sign in told for sign in FULL):
            return LauncherError(no_space(self.folder))
        return LauncherError(
            _("The private PostgreSQL did not start: {reason} (log: {log})").format(
                reason=last_line(told), log=self.log
            )
        )

    def _choose(self) -> Binaries:
        found = all_binaries() if self._available is None else self._available
        wanted = made_by(self.data)
        if not found:
            raise LauncherError(
                _("There is no PostgreSQL server {oldest} or newer here: install one, or name yours in"
                    " TURNO_DATABASE__URL.")
                .format(oldest=OLDEST)
            )  # fmt: skip
        fitting = [binaries for binaries in found if not wanted or str(binaries.major) == wanted]
        if not fitting:
            raise LauncherError(
                _(
                    "The data in {folder} was made by PostgreSQL {wanted}, and this machine has {found}:"
                    " install PostgreSQL {wanted} again, or dump the data with its pg_dumpall, move"
                    " the folder away and start again."
                ).format(
                    folder=self.data,
                    wanted=wanted,
                    found=", ".join(str(binaries.major) for binaries in found),
                )
            )
        return fitting[0]

    def _reachable(self, binaries: Binaries) -> Binaries:
        if self.account is None or self._as_account([binaries.folder / "postgres", "--version"]).returncode == 0:
            return binaries
        return copy_for(binaries, self.folder)

    def _as_account(self, command: list[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a short command as the server's user, with untranslated messages."""
        switch = self.account.popen() if self.account else {}
        try:
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
                env=environment(),
                preexec_fn=tied(signal.SIGTERM),  # an orphaned initdb would get into the next one's way
                **switch,
            )
        except PermissionError as error:
            return subprocess.CompletedProcess(command, 126, "", str(error))

    def _initialise(self, binaries: Binaries, password: str | None, *, durable: bool) -> None:
        fresh = self.folder / "data.new"  # renamed when complete: an interrupted one is thrown away
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)
        secret = self.folder / "password"
        if password or not secret.exists():
            folders.write_private(secret, (password or secrets.token_urlsafe(24)) + "\n", self.account)
        folders.give(secret, self.account)
        locale = ["--locale=C"] if sys.platform == "darwin" else ["--locale=C.UTF-8"]
        if binaries.major >= 17:
            locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command: list[str | Path] = [
            binaries.folder / "initdb",
            "-D",
            fresh,
            "-U",
            ROLE,
            "-E",
            "UTF8",
            *locale,
        ]
        command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-instructions"]
        if not durable:
            command.append("--no-sync")
        made = self._as_account(command)
        if made.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            raise self.failure(made.stderr or made.stdout)
        fresh.rename(self.data)


def made_by(data: Path) -> str:
    """The major version that made this data, "" when there is none. Raises OSError."""
    try:
        return (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return ""


def end_leftover(data: Path) -> bool:
    """End the server that still runs on this data after its starter was killed; True when there was one."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return False
    found = identity_of(pid)
    if found is None or f"-D {data} " not in command_of(pid):  # the pid may be somebody else's by now
        return False
    return end(found, [(signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)])


def environment() -> dict[str, str]:
    """The environment of server and tools: untranslated messages, nothing of the launcher's."""
    kept = {name: os.environ[name] for name in ("PATH", "TZ", "TMPDIR") if name in os.environ}
    return {"PATH": os.defpath, **kept, "LC_ALL": "C"}


def last_line(text: str) -> str:
    """The line of a server's output that says why it ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if "FATAL:" in line or "PANIC:" in line or "error:" in line]
    return (fatal[0].partition("] ")[2] or fatal[0]) if fatal else lines[-1] if lines else "?"
