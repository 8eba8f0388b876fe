"""A RabbitMQ node of one's own: own folder, ports and password, on loopback alone, with an epmd of its own.

Its data are nobody's only copy: what a queue has lost is announced again from PostgreSQL.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from turno.launcher import folders
from turno.launcher.account import Account
from turno.launcher.children import Child
from turno.launcher.cluster import ROLE
from turno.launcher.folders import remembered_port, write_private
from turno.launcher.processes import Identity, end, identity_of

HOST = "127.0.0.1"
GRACE = 30.0  # seconds to stop in order
EPMD_GRACE = 5.0
# Debian's /usr/sbin/rabbitmq-server serves no other user than its own: the script itself is started.
PLACES = (
    "usr/lib/rabbitmq/bin",
    "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
    "opt/rabbitmq/sbin",
    "opt/homebrew/opt/rabbitmq/sbin",
    "usr/local/opt/rabbitmq/sbin",
)
GREETING = b"AMQP\x00\x00\x09\x01"
METHOD_FRAME = b"\x01"


@dataclass(frozen=True)
class Programs:
    """The server's start script, and Erlang's port mapper."""

    server: Path
    epmd: Path


def programs(root: Path = Path("/")) -> Programs | None:
    """The machine's RabbitMQ, None where there is none."""
    found = (folder / "rabbitmq-server" for pattern in PLACES for folder in sorted(root.glob(pattern), reverse=True))
    server = next((path for path in found if os.access(path, os.X_OK)), None)
    epmd = shutil.which("epmd")
    return Programs(server, Path(epmd)) if server and epmd else None


class PrivateRabbitMQ:
    """One node in a folder. `prepare` it, then start `children` in their order. Raises OSError."""

    def __init__(self, folder: Path, log_folder: Path, found: Programs, account: Account | None) -> None:
        self.folder, self.logs, self.programs, self.account = folder, log_folder, found, account
        self.port = self.epmd_port = self.dist_port = 0

    @property
    def url(self) -> str:
        """Its address; once it is prepared."""
        return f"amqp://{ROLE}:{folders.password(self.folder, self.account)}@{HOST}:{self.port}/"

    def prepare(self) -> None:
        """Make the folder, choose the ports, write the configuration."""
        folders.make(self.folder, self.account)
        data = self.folder / "mnesia"
        if not (self.folder / "password").exists():
            shutil.rmtree(data, ignore_errors=True)  # they know another one
        self._end_stray_epmd()
        self.port = remembered_port(self.folder / "port")
        self.epmd_port = remembered_port(self.folder / "epmd-port")
        self.dist_port = remembered_port(self.folder / "dist-port")
        settings = {
            "listeners.tcp.default": f"{HOST}:{self.port}",
            "default_user": ROLE,
            "default_pass": folders.password(self.folder, self.account),
            "disk_free_limit.absolute": "50MB",
            "vm_memory_high_watermark.absolute": "512MB",
            "log.file": "false",
            "log.console": "true",
            "log.console.level": "warning",
        }
        text = "".join(f"{name} = {value}\n" for name, value in settings.items())
        write_private(self.folder / "rabbitmq.conf", text, self.account)
        write_private(self.folder / "enabled_plugins", "[].\n", self.account)

    def children(self) -> list[Child]:
        """The port mapper and the node, in the order in which they start."""
        epmd: list[str | Path] = [self.programs.epmd, "-address", HOST, "-port", str(self.epmd_port)]
        env = self._environment()
        return [
            Child(
                "epmd",
                epmd,
                self.logs / "epmd.log",
                env,
                self.folder,
                EPMD_GRACE,
                self.account,
                before=self._end_stray_epmd,
            ),
            Child(
                "rabbitmq", [self.programs.server], self.logs / "rabbitmq.log", env, self.folder, GRACE, self.account
            ),
        ]

    def maps_ports(self) -> bool:
        """Whether its port mapper listens: the node looks for it when it starts."""
        return _listens(self.epmd_port)

    def answers(self) -> bool:
        """Whether it greets as AMQP servers do: the port is open before that."""
        try:
            with socket.create_connection((HOST, self.port), timeout=2.0) as connection:
                connection.sendall(GREETING)
                return connection.recv(1) == METHOD_FRAME
        except OSError:
            return False

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "TZ", "TMPDIR") if name in os.environ}
        return {
            "PATH": os.defpath,
            **kept,
            "HOME": str(self.folder),  # of the cookie
            "LC_ALL": "C.UTF-8",
            "RABBITMQ_NODENAME": "turno@localhost",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            # The script becomes the node, instead of standing above it where signals end.
            "RUNNING_UNDER_SYSTEMD": "true",
            # Without the first the port between nodes would be open to the network; without the second a port mapper
            # would stay behind.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false",
            "ERL_CRASH_DUMP_SECONDS": "0",  # none: its last words are then why it did not start
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
        }

    def _end_stray_epmd(self) -> None:
        """A node that starts while our port mapper is gone for a moment starts one of its own, which keeps the port
        from ours; nobody else knows it. It ends by a word, but not while a node is known to it."""
        with contextlib.suppress(FileNotFoundError, ValueError, subprocess.TimeoutExpired):
            port = int((self.folder / "epmd-port").read_text(encoding="utf-8"))
            for stray in _port_mappers(port):
                end(stray, [(signal.SIGKILL, EPMD_GRACE)])
            if _listens(port):
                command = [str(self.programs.epmd), "-port", str(port), "-kill"]
                subprocess.run(command, capture_output=True, timeout=10, check=False)
                until = time.monotonic() + EPMD_GRACE
                while _listens(port) and time.monotonic() < until:  # it answers before it has ended
                    time.sleep(0.05)


def _port_mappers(port: int) -> list[Identity]:
    """Those of this port that a node has started in the background."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program, *words = (folder / "cmdline").read_bytes().split(b"\0")
            if Path(program.decode(errors="replace")).name != "epmd" or b"-daemon" not in words:
                continue
            if f"ERL_EPMD_PORT={port}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(identity_of(int(folder.name)))
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
    return [identity for identity in found if identity]


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False
