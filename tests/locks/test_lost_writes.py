"""What asyncio makes of a write to a connection that was lost a moment ago: a fault of the server, and no other."""

import pytest
from redis.asyncio import Redis

from tests.locks.house import pair, until, values, worker

pytestmark = pytest.mark.slow


async def test_a_write_to_a_lost_connection_is_the_server_s_fault_and_no_claim_fails_by_it(redis_server, monkeypatch):
    said = Redis.execute_command
    lost: list[str] = []

    async def once_lost(client, *words, **options):
        if not lost:
            lost.append(words[0])
            raise AttributeError("'NoneType' object has no attribute '_add_writer'")
        return await said(client, *words, **options)

    async with worker([redis_server]) as locks:
        await locks.acquire([pair()])
        monkeypatch.setattr(Redis, "execute_command", once_lost)
        assert len((await locks.acquire([pair()])).held) == 1  # the fence holds without it
        await until(lambda: lost and not locks.problems(), "it is looked at, and answers")
        await locks.acquire([mine := pair()])
        assert values([redis_server], mine[0]) == [str(mine[1])]
