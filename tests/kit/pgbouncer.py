"""A private PgBouncer for tests, in transaction mode: a process of their own on a free loopback port."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.kit.processes import eventually
from turno.launcher import folders, ports
from turno.launcher.account import service_account
from turno.launcher.processes import tied

HOST, USER, KEEPER, PASSWORD = "127.0.0.1", "turno", "keeper", "a bouncer's word"
PATIENCE = 60.0  # seconds: what a busy machine may need for one answer
OPTIONS = {
    "pool_mode": "transaction",
    "default_pool_size": "5",
    "max_client_conn": "200",
    "server_login_retry": "1",
    "log_connections": "0",
    "log_disconnections": "0",
}
NOT_HERE = "no pgbouncer is installed; install the package pgbouncer"


def program() -> str | None:
    """Where it is: Debian puts it where only root looks."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


class PgBouncer:
    """Stands before the database that `behind` names; `url` is the way through it.

    `options` are lines of its configuration over OPTIONS. `kill`, `stop` and `start` take it away and bring it back at
    the same address. It refuses to run as root: then it runs as the account that the private PostgreSQL has.
    """

    def __init__(self, folder: Path, behind: str, **options: str) -> None:
        self.port = ports.free_port()
        self.url = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@{HOST}:{self.port}/turno"
        self._folder = folder
        self._account = service_account()
        self._process: subprocess.Popen[bytes] | None = None
        self._configure(behind, OPTIONS | options)

    def _configure(self, behind: str, options: dict[str, str]) -> None:
        own = {
            "listen_addr": HOST,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": str(self._folder / "users.txt"),
            "admin_users": KEEPER,
        }
        lines = ["[databases]", f"turno = {_server(behind)}", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in (own | options).items()]
        folders.make(self._folder, self._account)
        for name, text in (
            ("pgbouncer.ini", "\n".join(lines) + "\n"),
            ("users.txt", "".join(f'"{user}" "{PASSWORD}"\n' for user in (USER, KEEPER))),
        ):
            folders.write_private(self._folder / name, text, self._account)

    @property
    def log(self) -> str:
        """What it has said since its first start."""
        return (self._folder / "pgbouncer.log").read_text(errors="replace")

    def start(self) -> None:
        """Returns when it answers; fails with one sentence where there is none."""
        path = program()
        if path is None:
            pytest.fail(NOT_HERE, pytrace=False)
        with (self._folder / "pgbouncer.log").open("ab") as log:
            self._process = subprocess.Popen(
                [path, str(self._folder / "pgbouncer.ini")],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=tied(signal.SIGKILL),  # noqa: PLW1509  (it ends with the tests, however those end)
                **(self._account.popen() if self._account else {}),
            )
        eventually(self._answers, "PgBouncer answers")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log[-2000:]
        try:
            return bool(self.show("VERSION"))
        except psycopg.OperationalError:
            return False

    def stop(self) -> None:
        """End it in an orderly way, at once: whoever is connected is cut off."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL it; its clients, and its sessions in the database, see their connections close."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE)
            self._process = None

    def tell(self, words: str) -> None:
        """A command of its console: `PAUSE`, `RESUME`, `RECONNECT`."""
        with self._console() as console:
            console.execute(words.encode())

    def show(self, what: str) -> list[dict[str, Any]]:
        """A list of its console: `POOLS`, `SERVERS`, `STATS`."""
        with self._console() as console:
            return console.execute(f"SHOW {what}".encode()).fetchall()

    def pool(self) -> dict[str, Any]:
        """The line of SHOW POOLS that tells of the database behind it; empty before anybody came."""
        return next((line for line in self.show("POOLS") if line["database"] == "turno"), {})

    def _console(self) -> "psycopg.Connection[dict[str, Any]]":
        return psycopg.connect(
            host=HOST,
            port=self.port,
            user=KEEPER,
            password=PASSWORD,
            dbname="pgbouncer",
            connect_timeout=10,
            autocommit=True,
            row_factory=dict_row,
        )


def _server(url: str) -> str:
    """A database's address as PgBouncer's configuration writes it."""
    parts = urlsplit(url)
    named = {
        "host": parts.hostname or parse_qs(parts.query).get("host", [HOST])[0],
        "port": str(parts.port or 5432),
        "dbname": unquote(parts.path.lstrip("/")),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }
    return " ".join(f"{name}='{value.replace("'", "''")}'" for name, value in named.items() if value)


@contextmanager
def running_pgbouncer(behind: str, **options: str) -> Iterator[PgBouncer]:
    """One before this database, ended with the block."""
    with tempfile.TemporaryDirectory(prefix="turno-test-") as folder:
        Path(folder).chmod(0o755)  # its account passes through it
        bouncer = PgBouncer(Path(folder) / "pgbouncer", behind, **options)
        try:
            bouncer.start()
            yield bouncer
        finally:
            bouncer.kill()
