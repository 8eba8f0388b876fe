"""The servers of a run: a durable PostgreSQL with a database for each program, RabbitMQ and Redis when asked for."""

import os
import tempfile
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.kit.rabbitmq_server import RabbitNode, running_rabbitmq
from tests.kit.redis_server import RedisServer, running_redis
from turno.launcher.postgres import PrivatePostgres
from workers import tree

# As an installation has it: every commit waits for the disk. The rest is that of a private server (launcher).
DURABLE = {"synchronous_commit": "on", "fsync": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"}
# A node that is filled with 20,000 messages at once takes some 750 MB, more than the tests' own may have: at half of
# the mark it begins to move messages to the disk, and at the mark it lets nobody publish.
ROOMY = {"vm_memory_high_watermark.absolute": "2GB"}


class Services:
    """All in one throw-away folder; each server is started when somebody asks for it, and ended with the block."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.folder = Path()

    def __enter__(self) -> Self:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="turno-benchmark-")))
        self.folder.chmod(0o755)  # the server's user passes through it
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @cached_property
    def postgres(self) -> PrivatePostgres:
        """One server for all."""
        server = PrivatePostgres(self.folder / "postgres", options=DURABLE)
        self._stack.callback(server.stop, "immediate")
        server.start()
        return server

    @cached_property
    def rabbitmq(self) -> RabbitNode:
        """A node on loopback."""
        before = set(tree.children(os.getpid()))
        node = self._stack.enter_context(running_rabbitmq(self.folder / "rabbitmq", **ROOMY))
        self._rabbitmq_pids = sorted(set(tree.children(os.getpid())) - before)
        return node

    @cached_property
    def redis(self) -> RedisServer:
        """One server, which keeps nothing on disk."""
        (self.folder / "redis").mkdir()
        before = set(tree.children(os.getpid()))
        [server] = self._stack.enter_context(running_redis(self.folder / "redis"))
        self._redis_pids = sorted(set(tree.children(os.getpid())) - before)
        return server

    def pids(self) -> dict[str, list[int]]:
        """The processes of those that run, for their processor time."""
        process = self.postgres.process
        found = {"postgres": [process.pid] if process else []}
        if "rabbitmq" in self.__dict__:
            found["rabbitmq"] = self._rabbitmq_pids
        if "redis" in self.__dict__:
            found["redis"] = self._redis_pids
        return found

    def database(self, name: str) -> str:
        """The address of a database, which is made when it is not there."""
        url = self.postgres.url_of(name)
        with psycopg.connect(self.postgres.url_of("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if known is None:
                connection.execute(f'CREATE DATABASE "{name}"')
        return url

    def settle(self, *urls: str) -> None:
        """What each side gets before it is measured: VACUUM ANALYZE, and no checkpoint under way."""
        for url in urls:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
                connection.execute("CHECKPOINT")

    def fdatasync_us(self) -> float:
        """Microseconds of a write of 8 kB that waits for the disk: what flatters, or not, each commit here."""
        import time

        handle = os.open(self.folder / "probe", os.O_WRONLY | os.O_CREAT)
        try:
            times = []
            for _ in range(50):
                os.pwrite(handle, b"\0" * 8192, 0)
                began = time.perf_counter()
                os.fdatasync(handle)
                times.append(time.perf_counter() - began)
        finally:
            os.close(handle)
        return round(1e6 * sorted(times)[25], 0)
