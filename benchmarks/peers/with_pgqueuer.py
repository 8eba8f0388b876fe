"""PgQueuer: the entrypoints, its worker and its driver (`python -m benchmarks.peers.with_pgqueuer worker|driver`).

With asyncpg and uvloop, its fastest. A finished job's row is deleted, and three rows of a log are kept of it. No
table is unlogged (durability "durable", its default).
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks import tally
from benchmarks.driver import serve

URL = os.environ["BENCHMARK_DATABASE"]
BATCH_SIZE = int(os.environ.get("BENCHMARK_BATCH", "10"))
BATCH = 1000


async def _work() -> None:
    connection = await asyncpg.connect(URL)
    queue = PgQueuer.from_asyncpg_connection(connection)

    @queue.entrypoint("nothing")
    async def nothing(job: Job) -> None:
        tally.ran()

    @queue.entrypoint("late")
    async def late(job: Job) -> None:
        tally.late(float(job.payload or b"0"))

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
    await queue.qm.run(dequeue_timeout=timedelta(seconds=30), batch_size=BATCH_SIZE)


class Sender:
    """The driver's connection and its loop."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._connection: asyncpg.Connection = self._run(asyncpg.connect(URL))
        self._queries = Queries.from_asyncpg_connection(self._connection)
        if self._one("SELECT to_regclass('pgqueuer')") is None:
            self._run(self._queries.install())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def _one(self, text: str) -> Any:
        return self._run(self._connection.fetchval(text))

    def clear(self) -> None:
        """Forget all."""
        self._run(self._connection.execute("TRUNCATE pgqueuer, pgqueuer_log, pgqueuer_statistics"))

    def load(self, jobs: int, size: int = 0) -> None:
        """So many, as fast as it goes."""
        self.bulk(jobs, size)

    def bulk(self, jobs: int, size: int = 0) -> float:
        """Seconds for so many, a thousand in a statement."""

        async def send() -> None:
            for done in range(0, jobs, BATCH):
                count = min(BATCH, jobs - done)
                await self._queries.enqueue(["nothing"] * count, [b"x" * size] * count, [0] * count)

        began = time.perf_counter()
        self._run(send())
        return time.perf_counter() - began

    def one_by_one(self, jobs: int) -> float:
        """Seconds for so many, each in a transaction of its own."""

        async def send() -> None:
            for _ in range(jobs):
                await self._queries.enqueue("nothing", None)

        began = time.perf_counter()
        self._run(send())
        return time.perf_counter() - began

    def latency(self, samples: int, gap: float) -> None:
        """One after the other."""

        async def send() -> None:
            for _ in range(samples):
                await self._queries.enqueue("late", str(time.monotonic()).encode())
                await asyncio.sleep(gap * random.uniform(0.5, 1.5))  # noqa: S311  (spreads clients, guards nothing)

        self._run(send())

    def left(self) -> int:
        """How many are not done."""
        return int(self._one("SELECT count(*) FROM pgqueuer"))

    def kept(self) -> dict[str, int]:
        """The rows of its log; those that it has summed up already have left it."""
        return {"successful": int(self._one("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"))}


def main() -> None:
    """Work, or serve as the driver."""
    if sys.argv[1:2] == ["worker"]:
        uvloop.run(_work())
        return
    sender = Sender()
    verbs = ("clear", "load", "bulk", "one_by_one", "latency", "left", "kept")
    serve({verb: getattr(sender, verb) for verb in verbs})


if __name__ == "__main__":
    main()
