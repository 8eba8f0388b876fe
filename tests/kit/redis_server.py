"""A private Redis for tests: a process of their own on a free loopback port, with nothing kept on disk."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.kit.processes import eventually
from turno.launcher import ports
from turno.launcher.processes import tied

PATIENCE = 60.0  # seconds: what a busy machine may need for one answer


class RedisServer:
    """`url` names it; `kill` and `start` take it away and bring it back, empty, at the same address."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._options = options
        self.port = ports.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers; fails with one sentence where no redis-server is installed."""
        path = shutil.which("redis-server")
        if path is None:
            pytest.fail("no redis-server is on the PATH; install the package redis-server", pytrace=False)
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [path, *options, "--dir", str(self._folder), *self._options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=tied(signal.SIGKILL),  # noqa: PLW1509  (it ends with the tests, however those end)
            )
        eventually(self._answers, "redis answers")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "redis.log").read_text()[-2000:]
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it; its clients see their connections close."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None

    stop = kill

    def freeze(self) -> None:
        """It answers nothing, and takes connections all the same."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on, with whatever it was told meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        """It forgets everything, and goes on."""
        assert self.ask("FLUSHALL") == "OK"

    def restore(self) -> None:
        """As it was at first: answering, and empty."""
        if self._process is None:
            self.start()
        self.thaw()
        self.flush()

    def ask(self, *words: str) -> str | int | list[Any] | None:
        """One command by the protocol itself, and its answer; fails with the server's words where it refuses."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            said = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
            connection.sendall(f"*{len(words)}\r\n{''.join(said)}".encode())
            return _answer(connection.makefile("rb"))

    def ttls(self) -> dict[str, int]:
        """The keys that are there, with the milliseconds that each has left (-1: for ever)."""
        script = "local t = {} for _, k in ipairs(redis.call('KEYS', '*')) do "
        script += "t[#t + 1] = k t[#t + 1] = redis.call('PTTL', k) end return t"
        found = self.ask("EVAL", script, "0")
        assert isinstance(found, list)
        return dict(zip(found[::2], found[1::2], strict=True))


def _answer(stream: BinaryIO) -> str | int | list[Any] | None:
    kind, text = (line := stream.readline().decode().rstrip("\r\n"))[:1], line[1:]
    if kind == "+":
        return text
    if kind == ":":
        return int(text)
    if kind == "$":
        return None if text == "-1" else stream.read(int(text) + 2)[:-2].decode()
    if kind == "*":
        return None if text == "-1" else [_answer(stream) for _ in range(int(text))]
    raise AssertionError(f"redis says: {line!r}")


@contextmanager
def running_redis(folder: Path, count: int = 1, *options: str) -> Iterator[list[RedisServer]]:
    """So many, with these options of the program, ended with the block."""
    servers = []
    try:
        for n in range(count):
            (folder / f"redis{n}").mkdir()
            servers.append(server := RedisServer(folder / f"redis{n}", *options))
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()


def over_redis(url: str) -> dict[str, dict[str, object]]:
    """Django's CHANNEL_LAYERS for live screens over this Redis, as `turno.settings` makes them."""
    layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"screens": {"BACKEND": layer, "CONFIG": {"hosts": [url], "prefix": "turno:"}}}
