"""A Redis (or Valkey) server of one's own: own folder, port and password, on loopback, and nothing of it kept."""

import os
import shutil
import socket
from pathlib import Path

from turno.launcher import folders
from turno.launcher.account import Account
from turno.launcher.children import Child
from turno.launcher.cluster import ROLE

HOST = "127.0.0.1"
GRACE = 5.0  # seconds to stop
NAMES = ("redis-server", "valkey-server")


def program() -> Path | None:
    """The machine's server, None where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return Path(found) if found else None


class PrivateRedis:
    """One server in a folder. `prepare` it, then start its `child`. Raises OSError."""

    def __init__(self, folder: Path, log_folder: Path, server: Path, account: Account | None) -> None:
        self.folder, self.logs, self.server, self.account = folder, log_folder, server, account
        self.port = 0

    @property
    def url(self) -> str:
        """Its address; once it is prepared."""
        return f"redis://{ROLE}:{folders.password(self.folder, self.account)}@{HOST}:{self.port}/0"

    def prepare(self) -> None:
        """Make the folder, choose the port, write the configuration."""
        folders.make(self.folder, self.account)
        self.port = folders.remembered_port(self.folder / "port")
        secret = folders.password(self.folder, self.account)
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f'dir "{self.folder}"',
            'save ""',
            "appendonly no",
            "user default off",
            f"user {ROLE} on >{secret} ~* &* +@all",
        ]
        folders.write_private(self.folder / "redis.conf", "\n".join(lines) + "\n", self.account)

    def child(self) -> Child:
        """The process."""
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        argv = [self.server, self.folder / "redis.conf"]
        return Child("redis", argv, self.logs / "redis.log", env, self.folder, GRACE, self.account)

    def answers(self) -> bool:
        """Whether it takes the password and answers."""
        secret = folders.password(self.folder, self.account)
        try:
            with socket.create_connection((HOST, self.port), timeout=2.0) as connection:
                connection.sendall(f"AUTH {ROLE} {secret}\r\nPING\r\n".encode())
                told = b""
                while told.count(b"\n") < 2 and (more := connection.recv(256)):
                    told += more
        except OSError:
            return False
        return told == b"+OK\r\n+PONG\r\n"
