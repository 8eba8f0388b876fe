"""A private Redis for tests: a process of their own on a free loopback port, with nothing kept on disk."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.processes import eventually
from turno.launcher import ports


class RedisServer:
    """`url` names it; `stop` and `start` take it away and bring it back, empty, at the same address."""

    def __init__(self, folder: Path) -> None:
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
                [path, *options, "--dir", str(self._folder)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
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

    def stop(self) -> None:
        """Kill it; its clients see their connections close."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    """One that is ended with the block."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def over_redis(url: str) -> dict[str, dict[str, object]]:
    """Django's CHANNEL_LAYERS for live screens over this Redis, as `turno.settings` makes them."""
    layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"screens": {"BACKEND": layer, "CONFIG": {"hosts": [url], "prefix": "turno:"}}}
