"""The folder of a private server: its user's alone, with a password in it and the ports that it had."""

import os
import secrets
from pathlib import Path

from turno.launcher import ports
from turno.launcher.account import Account


def make(folder: Path, account: Account | None) -> None:
    """Make the folder and what leads to it; it is for its user alone, who is `account` under root. Raises OSError."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700 if missing == folder else 0o755, exist_ok=True)
    give(folder, account)
    folder.chmod(0o700)


def give(path: Path, account: Account | None) -> None:
    """Hand a file or folder to the server's user. Raises OSError."""
    if account:
        os.chown(path, account.uid, account.gid)


def write_private(path: Path, text: str, account: Account | None) -> None:
    """Write a file that only the server's user may read, from its first moment on. Raises OSError."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
    give(path, account)


def password(folder: Path, account: Account | None) -> str:
    """The password in the folder's file; a random one where there is none. Raises OSError."""
    path = folder / "password"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(24) + "\n", account)
    return path.read_text(encoding="utf-8").strip()


def remembered_port(path: Path) -> int:
    """The port that stands in the file, when it is free; else another one, which is written there. Raises OSError."""
    try:
        port = int(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        port = 0
    if not port or not ports.is_free(port):
        port = ports.free_port()
        path.write_text(f"{port}\n", encoding="utf-8")
    return port
