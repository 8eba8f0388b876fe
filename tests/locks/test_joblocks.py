"""Locks of jobs on one server and on three: whose they are, how long, and what they cost."""

import asyncio
import time
from uuid import uuid4

import pytest

from tests.locks.house import PREFIX, key, locked, pair, until, values, worker
from workers.locks import redis_nodes
from workers.locks.redis_nodes import Nodes


@pytest.fixture(params=[1, 3])
def servers(three, request):
    return three[: request.param]


def calls(server):
    """How often the server was asked for a script, its own looks apart."""
    stats = server.ask("INFO", "commandstats")
    return sum(
        int(line.split("calls=")[1].split(",")[0])
        for line in stats.splitlines()
        if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:"))
    )


async def test_a_lock_has_the_token_as_its_value_on_every_server_and_a_ttl(servers):
    async with worker(servers) as locks:
        job, token = pair()
        taken = await locks.acquire([(job, token)])
        assert (taken.held, taken.busy) == ({token}, set())
        assert values(servers, job) == [str(token)] * len(servers)
        for server in servers:
            assert 28_000 < server.ttls()[key(job)] <= 30_000


async def test_another_token_is_busy_and_ones_own_is_ones_own_until_it_is_given_back(servers):
    async with worker(servers) as first, worker(servers) as second:
        job, token = pair()
        other = pair(job)
        await first.acquire([(job, token)])
        taken = await second.acquire([other, (job, token), pair()])
        assert taken.busy == {other[1]}
        assert token in taken.held
        assert len(taken.held) == 2
        first.release([(job, token)])
        second.release([other])  # never had it
        await until(lambda: values(servers, job) == [None] * len(servers), "it is free")
        assert (await second.acquire([other])).held == {other[1]}


async def test_one_who_is_not_the_holder_releases_nothing(servers):
    async with worker(servers) as first, worker(servers) as second:
        job, token = pair()
        await first.acquire([(job, token)])
        second.release([pair(job)])
        await asyncio.sleep(0.2)
        assert values(servers, job) == [str(token)] * len(servers)


async def test_what_is_held_is_kept_for_as_long_as_it_is_held(servers):
    async with worker(servers, ttl=3.0) as first, worker(servers, ttl=3.0) as second:
        job, token = pair()
        await first.acquire([(job, token)])
        for _ in range(5):
            await asyncio.sleep(0.8)
            assert (await second.acquire([other := pair(job)])).busy == {other[1]}
            assert locked(servers) == {key(job)}


async def test_a_batch_is_one_round_trip_and_so_is_what_is_given_back_in_one_moment(servers):
    async with worker(servers) as locks:
        first = [calls(server) for server in servers]
        await locks.acquire([pair()])
        locks.release([pair()])
        await until(
            lambda: all(calls(s) >= n + 2 for s, n in zip(servers, first, strict=True)), "the scripts are there"
        )
        before = [calls(server) for server in servers]
        pairs = [pair() for _ in range(300)]
        assert len((await locks.acquire(pairs)).held) == 300
        began = time.monotonic()
        for one in pairs:
            locks.release([one])
        assert time.monotonic() - began < 20  # nothing is waited for
        await until(lambda: len(locked(servers)) == 1, "all are given back")
        assert max(calls(server) - count for server, count in zip(servers, before, strict=True)) <= 5
        assert len(locks._book) == 1
        assert not locks._leaving


async def test_one_that_is_given_back_and_wanted_again_at_once_is_held(servers):
    async with worker(servers) as locks:
        job, token = pair()
        for _ in range(20):
            assert (await locks.acquire([(job, token)])).held == {token}
            locks.release([(job, token)])
        assert (await locks.acquire([(job, token)])).held == {token}
        await asyncio.sleep(0.2)
        assert values(servers, job) == [str(token)] * len(servers)


async def test_close_gives_everything_back(servers):
    async with worker(servers) as locks:
        await locks.acquire([pair() for _ in range(50)])
        assert len(locked(servers)) == 50
        began = time.monotonic()
    assert time.monotonic() - began < 20
    assert locked(servers) == set()


async def test_a_cancelled_taking_leaves_nothing(servers):
    async with worker(servers) as locks:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await locks.acquire([pair() for _ in range(400)])
        await until(lambda: not locked(servers), "nothing is left")
        assert not locks._book


async def test_a_job_that_another_runs_under_the_same_token_keeps_its_lock_and_is_not_kept_longer(servers):
    running = pair()
    async with worker(servers, ttl=1.0, running=lambda: [running[1]]) as owner:
        await owner.acquire([running])
        async with worker(servers, ttl=1.0, running=list) as second:
            assert (await second.acquire([running])).held == {running[1]}  # a message that came twice
            await asyncio.sleep(1.5)
            assert values(servers, running[0]) == [str(running[1])] * len(servers)
            owner.release([running])
            await until(lambda: not locked(servers), "the owner gives it back")
            await asyncio.sleep(0.5)
            assert locked(servers) == set()


async def test_a_claim_that_takes_longer_than_the_lock_costs_the_job_no_lock_in_the_end(servers):
    running = []
    async with worker(servers, ttl=1.0, running=lambda: running) as locks:
        job, token = pair()
        await locks.acquire([(job, token)])
        await until(lambda: values(servers, job) == [None] * len(servers), "nobody runs it, nobody keeps it")
        running.append(token)  # the database has answered
        await until(lambda: values(servers, job) == [str(token)] * len(servers), "it is locked again")
        locks.release([(job, token)])
        await until(lambda: not locked(servers), "it is given back")


async def test_a_message_that_comes_twice_to_the_worker_that_runs_its_job_costs_it_no_lock(servers):
    job, token = pair()
    async with worker(servers, running=lambda: [token]) as locks:
        await locks.acquire([(job, token)])
        assert (await locks.acquire([(job, token)])).held == {token}
        locks.release([(job, token)])  # of the second message nothing was started
        for _ in range(3):
            await asyncio.sleep(0.1)
            assert values(servers, job) == [str(token)] * len(servers)
        locks.release([(job, token)])  # the job's end
        await until(lambda: not locked(servers), "it is given back")


async def test_servers_that_forgot_everything_are_told_again(servers):
    async with worker(servers, ttl=1.0) as locks:
        job, token = pair()
        await locks.acquire([(job, token)])
        for server in servers:
            server.flush()
        await until(lambda: values(servers, job) == [str(token)] * len(servers), "it is taken again")


async def test_a_frozen_holder_loses_it_and_neither_keeps_nor_frees_its_successors(servers, caplog):
    async with worker(servers, ttl=0.6) as locks:
        job, token = pair()
        await locks.acquire([(job, token)])
        time.sleep(0.9)  # the whole process stands still
        assert [server.ask("SET", key(job), "successor", "NX", "PX", "20000") for server in servers] == ["OK"] * len(
            servers
        )
        await until(lambda: "lock.lost" in [record.message for record in caplog.records], "it is told")
        assert values(servers, job) == ["successor"] * len(servers)
        locks.release([(job, token)])
        await asyncio.sleep(0.2)
        assert values(servers, job) == ["successor"] * len(servers)
    assert locked(servers) == {key(job)}


async def test_of_many_who_want_one_job_never_two_hold_it_at_once(servers):
    job, holding, wins, most = uuid4(), set(), [], 0

    async def contend(locks, ends):
        nonlocal most
        while time.monotonic() < ends:
            token = uuid4()
            if (await locks.acquire([(job, token)])).held:
                holding.add(token)
                most = max(most, len(holding))
                await asyncio.sleep(0.005)
                holding.discard(token)
                wins.append(token)
                locks.release([(job, token)])
            await asyncio.sleep(0.003)

    # "defer": who goes on without a quorum holds nothing.
    async with (
        worker(servers, on_failure="defer") as a,
        worker(servers, on_failure="defer") as b,
        worker(servers, on_failure="defer") as c,
    ):
        ends = time.monotonic() + 2
        tasks = [asyncio.create_task(contend(locks, ends)) for locks in (a, b, c, a)]
        while time.monotonic() < ends:
            assert locked(servers) <= {key(job)}
            await asyncio.sleep(0.05)
        await asyncio.gather(*tasks)
    assert most == 1
    assert len(wins) > 5


async def test_what_is_no_lock_is_somebody_elses(servers):
    for server in servers:
        server.ask("SET", f"{PREFIX}job:x", "1")
    async with worker(servers) as locks:
        assert not locks.problems()


async def test_what_is_given_back_while_it_is_taken_again_is_not_taken(servers, monkeypatch):
    async with worker(servers, ttl=1.0) as locks:
        job, token = pair()
        await locks.acquire([(job, token)])
        take = locks._nodes.take

        async def slow(items, ttl):
            answers = await take(items, ttl)
            locks.release([(job, token)])  # its end is written just now
            return answers

        monkeypatch.setattr(locks._nodes, "take", slow)
        for server in servers:
            server.flush()
        await until(lambda: not locks._book, "the keeper has taken it again")
        await asyncio.sleep(0.2)
        assert locked(servers) == set()


async def test_what_servers_that_are_away_are_owed_is_bounded():
    nodes = Nodes(["redis://127.0.0.1:1"], prefix=PREFIX, timeout=0.1)
    for _ in range(3):
        await nodes.release([(key(uuid4()), "x") for _ in range(redis_nodes.OWED)])
    [node] = nodes._nodes
    assert len(node._owed) == redis_nodes.OWED
