"""A PostgreSQL server of one's own: own folder, own port, own password, a foreground child of this process.

`./iniciar.sh` keeps its data in one, the test suite starts, kills and restarts them. Folder: `data`,
`password` (mode 600), `port`, `postgres.log`, and the server's unix socket.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg
from psycopg import sql

from turno.launcher import patience, ports
from turno.launcher.binaries import Binaries
from turno.launcher.cluster import ROLE, Cluster, environment, last_line
from turno.launcher.errors import LauncherError
from turno.launcher.processes import children, end, spawn
from turno.launcher.say import _

HOST = "127.0.0.1"
SOCKET_PATH_LIMIT = 80  # bytes of a folder whose socket still fits into the system's limit of 104
START_PATIENCE = 120.0  # seconds for recovery after a crash
ZOMBIE_PATIENCE = 15.0  # seconds in which a killed server may still hold its lock file as a zombie
# For data that may go with the machine. A killed server still has every committed row: those are with the
# system before the commit returns, which `synchronous_commit=off` would not wait for.
QUICK = {"fsync": "off", "full_page_writes": "off"}
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
Mode = Literal["smart", "fast", "immediate"]
DEFAULTS = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "512MB",
    "jit": "off",  # every statement here is short
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
}


class PrivatePostgres:
    """One private server. `options` are its parameters over the defaults (`QUICK` turns durability off)."""

    def __init__(
        self,
        folder: Path,
        *,
        database: str = "turno",
        password: str | None = None,
        port: int | None = None,
        options: Mapping[str, str] | None = None,
        death_signal: signal.Signals = signal.SIGINT,
        available: list[Binaries] | None = None,
    ) -> None:
        self.cluster = Cluster(folder, available)
        self.folder, self.data, self.log = folder, self.cluster.data, self.cluster.log
        self.database, self.options = database, {**DEFAULTS, **(options or {})}
        self.death_signal = death_signal
        self.fixed_port = port
        self.port = port or 0
        self.version = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._password = password
        self._lock = threading.RLock()  # tests restart it from beside the load

    @property
    def password(self) -> str:
        """The role's password; it exists once the server was started."""
        return self.cluster.password

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.url_of(self.database)

    def url_of(self, database: str) -> str:
        """The address of another database of this server."""
        return f"postgresql://{ROLE}:{quote(self.password)}@{HOST}:{self.port}/{database}"

    @property
    def running(self) -> bool:
        """Whether the server process that this object started lives."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it answers. Raises LauncherError, which says why it does not."""
        with self._lock:
            if self.running:
                return
            durable = self.options.get("fsync") != "off"
            self._launch(self.cluster.prepare(self._password, durable=durable))

    def stop(self, mode: Mode = "fast", timeout: float = patience.DATABASE) -> None:
        """Stop it: "smart" waits for its clients, "fast" ends their sessions, "immediate" is like a crash."""
        with self._lock:
            if self.process is None:
                return
            if self.running:
                self.process.send_signal(STOP_SIGNALS[mode])
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def kill(self) -> None:
        """Kill the server and its backends without a word, as the system's out-of-memory killer would."""
        with self._lock:
            if self.process is None:
                return
            backends = children(self.process.pid)
            self.process.kill()
            self.process.wait()
            for backend in backends:  # they would notice by themselves, but a moment later
                end(backend, [(signal.SIGKILL, 5.0)])
            self.process = None

    def restart(self, mode: Mode | Literal["kill"] = "fast", pause: float = 0.0) -> None:
        """Stop or kill it, leave it away for `pause` seconds, start it again on the same port and data."""
        with self._lock:
            if mode == "kill":
                self.kill()
            else:
                self.stop(mode)
            threading.Event().wait(pause)
            self.start()

    def _launch(self, binaries: Binaries) -> None:
        self.version = binaries.version
        deadline = time.monotonic() + ZOMBIE_PATIENCE
        self.port = self.fixed_port or self._remembered_port()
        if not ports.is_free(self.port):
            raise LauncherError(_("Port {port} is taken by another program.").format(port=self.port))
        while True:
            before = self.log.stat().st_size if self.log.exists() else 0
            self._spawn(binaries)
            if self._answers():
                break
            with self.log.open("rb") as stream:
                stream.seek(before)
                told = stream.read().decode(errors="replace")
            self.process = None
            if "could not create any TCP/IP sockets" in told and not self.fixed_port:
                self.port = ports.free_port()
            elif "lock file" not in told and "pre-existing shared memory" not in told:
                raise self.cluster.failure(told)
            if time.monotonic() > deadline:
                raise self.cluster.failure(told)
            time.sleep(0.3)
        (self.folder / "port").write_text(f"{self.port}\n")

    def _remembered_port(self) -> int:
        try:
            port = int((self.folder / "port").read_text())
        except (FileNotFoundError, ValueError):
            return ports.free_port()
        return port if ports.is_free(port) else ports.free_port()

    def _spawn(self, binaries: Binaries) -> None:
        fits = len(os.fsencode(self.folder)) <= SOCKET_PATH_LIMIT
        quoted = '"{}"'.format(str(self.folder).replace('"', '""'))  # the setting is a list, split at commas
        socket_folder = quoted if fits else ""
        settings = {"listen_addresses": HOST, "unix_socket_directories": socket_folder, **self.options}
        command: list[str | Path] = [binaries.folder / "postgres", "-D", self.data, "-p", str(self.port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        switch = self.cluster.account.popen() if self.cluster.account else {}
        self.process = spawn(
            command, log=self.log, death_signal=self.death_signal, env=environment(), cwd=Path("/"), **switch
        )

    def _answers(self) -> bool:
        """Wait until the server takes connections and has the database; False when it ended instead."""
        deadline = time.monotonic() + START_PATIENCE
        while self.running:
            try:
                with psycopg.connect(self.url_of("postgres"), autocommit=True, connect_timeout=5) as connection:
                    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self.database])
                    if known.fetchone() is None:
                        name = sql.Identifier(self.database)
                        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
                return True
            except psycopg.OperationalError as error:
                if "password authentication failed" in str(error) or time.monotonic() > deadline:
                    self.stop("fast")
                    raise LauncherError(
                        _("The private PostgreSQL in {folder} does not accept the connection: {reason}").format(
                            folder=self.folder, reason=last_line(str(error))
                        )
                    ) from error
                time.sleep(0.03)
        return False
