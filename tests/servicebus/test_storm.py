"""Connections end, locks are lost, messages come twice: each job starts once all the same, and nothing stays behind."""

import asyncio
import random

import pytest

from tests.servicebus.desk import until
from tests.servicebus.test_faults import until_published
from tests.servicebus.test_receiving import connected, counts

pytestmark = pytest.mark.slow
JOBS = 200


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_happens_to_connections_and_locks_each_job_starts_once(bus, desk, hire, seed):
    rng = random.Random(seed)
    workers = [hire(default=5) for _ in range(2)]
    await connected(*workers)
    messages = [desk.dispatch() for _ in range(JOBS)]

    async def publish():
        for message in messages:
            await until_published(workers[0], message)

    async def harm():
        while True:
            await asyncio.sleep(rng.uniform(0.1, 0.6))
            what = rng.choice(("drop", "expire_locks", "duplicate"))
            bus.do(what, **({} if what == "drop" else {"queue": "turno-default"}))

    publishing, harming = asyncio.create_task(publish()), asyncio.create_task(harm())
    async with asyncio.timeout(60):
        while desk.waiting:
            for worker in workers:
                worker.finish(len(worker.held))
            await asyncio.sleep(0.01)
        await publishing  # of the last one it may not know that it arrived
    harming.cancel()
    for worker in workers:
        worker.finish(len(worker.held))
    bus.do("expire_locks", queue="turno-default")

    await until(lambda: counts(bus)["ready"] + counts(bus)["locked"] == 0, "nothing is left")
    assert desk.started == {message.token: 1 for message in messages}
