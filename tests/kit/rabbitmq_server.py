"""A private RabbitMQ for tests: a node on free loopback ports with a folder and a port mapper of its own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest
from pika import BlockingConnection, URLParameters
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from tests.kit.processes import eventually
from turno.launcher import ports
from turno.launcher.processes import tied
from turno.launcher.rabbitmq import Programs, programs

HOST = "127.0.0.1"
GIVEN = "TURNO_TEST_RABBITMQ"  # a server's URL, to be used instead of a node of one's own
PATIENCE = 180.0  # seconds for a boot, an end or a command, of which each takes four on an idle machine
OPTIONS = {
    "loopback_users": "none",
    "disk_free_limit.absolute": "50MB",
    "vm_memory_high_watermark.absolute": "512MB",
    "log.file": "false",
    "log.console": "true",
    "log.console.level": "info",
}


class RabbitServer:
    """A server at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url


class GivenServer(RabbitServer):
    """One that somebody else runs: it can be used, and not be taken away."""

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"the server of {GIVEN} is not these tests' own: no {name}")


class RabbitNode(RabbitServer):
    """`url` names it; `stop`, `kill` and `start` take it away and bring it back with its data at the same address.

    `options` are further lines of its rabbitmq.conf: `consumer_timeout="60000"`; `advanced` is its advanced.config.
    """

    def __init__(self, folder: Path, *, advanced: str = "[].", **options: str) -> None:
        self.folder = folder
        self.port, self._dist_port, self._epmd_port = (ports.free_port() for _ in range(3))
        super().__init__(f"amqp://turno:secret@{HOST}:{self.port}/")
        self._programs = found_programs()
        self._epmd: subprocess.Popen[bytes] | None = None
        self._node: subprocess.Popen[bytes] | None = None
        lines = {
            "listeners.tcp.default": f"{HOST}:{self.port}",
            "default_user": "turno",
            "default_pass": "secret",
            **OPTIONS,
            **options,
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rabbitmq.conf").write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
        (folder / "advanced.config").write_text(f"{advanced}\n")
        (folder / "enabled_plugins").write_text("[].\n")

    @property
    def log(self) -> str:
        """What it has said since its first start."""
        return (self.folder / "node.log").read_text(errors="replace")

    def _environment(self) -> dict[str, str]:
        folder = self.folder
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),  # of the cookie
            "LC_ALL": "C.UTF-8",
            "RABBITMQ_NODENAME": "turno@localhost",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RUNNING_UNDER_SYSTEMD": "true",  # the script becomes the node, so that signals reach it
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
        }

    def _spawn(self, *command: str, log: str) -> "subprocess.Popen[bytes]":
        with (self.folder / log).open("ab") as file:
            return subprocess.Popen(
                command,
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=tied(signal.SIGKILL),  # noqa: PLW1509  (it ends with the tests, however those end)
            )

    def start(self, wait: bool = True) -> None:
        """Start it, unless it runs; returns when it answers, unless told not to `wait`."""
        if self._node is not None:
            return
        if self._epmd is None:
            arguments = ("-address", HOST, "-port", str(self._epmd_port))
            self._epmd = self._spawn(str(self._programs.epmd), *arguments, log="epmd.log")
            eventually(lambda: not ports.is_free(self._epmd_port), "the port mapper listens")
        self._node = self._spawn(str(self._programs.server), log="node.log")
        if wait:
            self.wait()

    def wait(self) -> None:
        """Returns when it takes a login."""
        eventually(self.answers, "RabbitMQ answers", PATIENCE)

    def answers(self) -> bool:
        """Whether it takes a login."""
        assert self._node is not None
        assert self._node.poll() is None, self.log[-3000:]
        if ports.is_free(self.port):
            return False
        try:
            BlockingConnection(URLParameters(f"{self.url}?connection_attempts=1&socket_timeout=10")).close()
        except AMQPError:
            return False
        return True

    def stop(self) -> None:
        """Stop it in order: it closes its connections, and keeps what is durable."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL it."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP it: its connections stay, and nothing answers."""
        assert self._node is not None
        self._node.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT it."""
        assert self._node is not None
        self._node.send_signal(signal.SIGCONT)

    def _end(self, number: int) -> None:
        if self._node is not None:
            self._node.send_signal(number)
            self._node.wait(PATIENCE)
            self._node = None

    def close(self) -> None:
        """Kill what runs of it."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(PATIENCE)
            self._epmd = None

    def ctl(self, *arguments: str) -> str:
        """`rabbitmqctl`; takes a second or two, since it starts an Erlang of its own."""
        command = [str(self._programs.server.with_name("rabbitmqctl")), "--quiet", *arguments]
        done = subprocess.run(
            command,
            env=self._environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout} {done.stderr}"
        return done.stdout


def found_programs() -> Programs:
    """The machine's RabbitMQ; fails with one sentence where there is none."""
    found = programs()
    if found is None:
        pytest.fail("there is no RabbitMQ on this machine; install the package rabbitmq-server", pytrace=False)
    return found


def _started(folder: Path, options: dict[str, str]) -> RabbitNode:
    """A node that answers; another one where somebody took one of its ports while it booted."""
    for attempt in range(3):
        node = RabbitNode(folder / str(attempt), **options)
        try:
            node.start()
        except BaseException:
            node.close()
            if "already_used" not in node.log and "eaddrinuse" not in node.log:
                raise
        else:
            return node
    pytest.fail("no free port for RabbitMQ in three attempts", pytrace=False)


@contextmanager
def running_rabbitmq(folder: Path, **options: str) -> Iterator[RabbitNode]:
    """One that is ended with the block, and its data with it."""
    node = _started(folder, options)
    try:
        yield node
    finally:
        node.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def rabbitmq_of_session(folder: Path) -> Iterator[RabbitServer]:
    """The body of the fixture `rabbitmq_node`."""
    if given := os.environ.get(GIVEN):
        yield GivenServer(given)
        return
    with running_rabbitmq(folder) as node:
        yield node


@contextmanager
def raw(url: str) -> Iterator[BlockingChannel]:
    """A channel of the client library itself, past everything of ours."""
    connection = BlockingConnection(URLParameters(url))
    try:
        yield connection.channel()
    finally:
        with suppress(AMQPError):
            connection.close()
