"""Under root, the user that the private PostgreSQL runs as: the server refuses to run as root."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turno.launcher.errors import LauncherError
from turno.launcher.say import _

NAMES = ("postgres", "turno")


@dataclass(frozen=True)
class Account:
    """A system user."""

    name: str
    uid: int
    gid: int

    def popen(self) -> dict[str, Any]:
        """The arguments that make subprocess run something as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def service_account() -> Account | None:
    """None when this process is not root; else `postgres` or `turno`, which is made when neither exists.

    Raises LauncherError when it can't be made.
    """
    if os.geteuid() != 0:
        return None
    for name in NAMES:
        if found := _lookup(name):
            return found
    _create(NAMES[-1])
    found = _lookup(NAMES[-1])
    if found is None:
        raise LauncherError(_("The system user {name} could not be created.").format(name=NAMES[-1]))
    return found


def _lookup(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None


def _create(name: str) -> None:
    shell = next((path for path in ("/usr/sbin/nologin", "/sbin/nologin") if Path(path).exists()), "/bin/false")
    if tool := shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        command = [tool, "--system", "--no-create-home", "--user-group", "--shell", shell, name]
    elif tool := shutil.which("adduser", path="/usr/sbin:/sbin:/usr/bin:/bin"):  # busybox
        command = [tool, "-S", "-D", "-H", "-s", shell, name]
    else:
        raise LauncherError(
            _("PostgreSQL can't run as root, and there is no useradd here: start Turno as an ordinary user.")
        )
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise LauncherError(
            _("The system user {name} could not be created: {reason}").format(name=name, reason=made.stderr.strip())
        )
