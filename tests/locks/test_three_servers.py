"""Three independent servers, of which some are killed, frozen, cut off, emptied, or disagree."""

import asyncio
import time
from contextlib import ExitStack

import pytest

from tests.kit.proxy import Proxy
from tests.kit.redis_server import running_redis
from tests.locks.house import TIMEOUT, key, locked, pair, until, values, worker
from workers.locks.base import LocksAway


def said(caplog):
    return [record.message for record in caplog.records if record.message.startswith("locks.")]


def away(locks):
    return [problem["error"] for problem in locks.problems() if "answer for locks" in problem["error"]]


async def test_of_three_one_may_be_killed(three, caplog):
    async with worker(three, ttl=1.0) as locks:
        job, token = pair()
        await locks.acquire([(job, token)])
        three[0].kill()
        assert (await locks.acquire([other := pair()])).held == {other[1]}
        await until(lambda: len(locks.problems()) == 1, "it is told which")
        assert f"127.0.0.1:{three[0].port}" in locks.problems()[0]["error"]
        assert not away(locks)
        await asyncio.sleep(1.5)
        assert values(three[1:], job) == [str(token)] * 2
        three[0].start()  # empty
        await until(lambda: not locks.problems(), "it is back")
        assert (await locks.acquire([busy := pair(job)])).busy == {busy[1]}
    assert said(caplog) == []


async def test_when_two_are_killed_the_fence_goes_on_and_says_so_and_locks_again_when_they_are_back(three, caplog):
    async with worker(three, ttl=1.5) as locks:
        job, token = pair()
        await locks.acquire([(job, token)])
        three[0].kill()
        three[1].kill()
        unlocked = pair()
        assert (await locks.acquire([unlocked])).held == {unlocked[1]}
        assert away(locks) == ["Too few Redis servers answer for locks: jobs are guarded by the database alone"]
        began = time.monotonic()
        for _ in range(20):
            await locks.acquire([pair()])
        assert time.monotonic() - began < 20 * TIMEOUT * 0.9  # nobody waits for them any more
        assert said(caplog) == ["locks.away"]
        three[0].start()
        three[1].start()
        await until(lambda: not locks.problems(), "they are back")
        for mine in ((job, token), unlocked):
            await until(lambda mine=mine: values(three, mine[0]).count(str(mine[1])) >= 2, "it is locked")
        assert said(caplog) == ["locks.away", "locks.back"]
        assert (await locks.acquire([busy := pair(job)])).busy == {busy[1]}


async def test_when_two_are_killed_and_work_is_deferred_nothing_is_taken_until_they_are_back(three):
    async with worker(three, on_failure="defer") as locks:
        three[0].kill()
        three[2].kill()
        for _ in range(3):
            with pytest.raises(LocksAway, match="of 3 servers answer"):
                await locks.acquire([pair(), pair()])
        await until(lambda: not locked([three[1]]), "nothing is left")
        assert away(locks) == ["Too few Redis servers answer for locks: no work is taken until they do"]
        assert not locks._book
        three[0].start()
        three[2].start()
        await until(lambda: not locks.problems(), "they are back")
        assert (await locks.acquire([mine := pair()])).held == {mine[1]}


async def test_one_that_is_frozen_delays_one_call_and_no_other(three):
    async with worker(three) as locks:
        three[1].freeze()
        began = time.monotonic()
        assert (await locks.acquire([mine := pair()])).held == {mine[1]}
        assert time.monotonic() - began < 20
        began = time.monotonic()
        for _ in range(20):
            assert len((await locks.acquire([pair()])).held) == 1
        assert time.monotonic() - began < 20 * TIMEOUT * 0.9
        three[1].thaw()
        await until(lambda: not locks.problems(), "it is back")


@pytest.mark.parametrize("on_failure", ["fence", "defer"])
async def test_what_frozen_ones_took_too_late_is_given_back_when_they_go_on(three, on_failure):
    async with worker(three, on_failure=on_failure) as locks:
        three[0].freeze()
        three[1].freeze()
        mine = pair()
        try:
            await locks.acquire([mine])
            locks.release([mine])
        except LocksAway:
            assert on_failure == "defer"
        three[0].thaw()
        three[1].thaw()
        await until(lambda: not locks.problems(), "they are back")
        await until(lambda: not locked(three), "nothing is left, long before the TTL ends")


async def test_who_is_cut_off_from_two_goes_on_by_itself_and_a_successor_is_not_robbed(three, caplog):
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.url)) for server in three]
        async with worker([proxy.url for proxy in proxies], ttl=2.0) as cut, worker(three) as other:
            job, token = pair()
            await cut.acquire([(job, token)])
            proxies[0].blackhole()
            proxies[1].blackhole()
            successor = pair(job)
            assert (await other.acquire([successor])).busy == {successor[1]}
            await until(lambda: values(three, job).count(None) >= 2, "the lock passes")
            assert (await other.acquire([successor])).held == {successor[1]}
            await until(lambda: away(cut), "it knows")
            assert len((await cut.acquire([pair()])).held) == 1
            await until(lambda: values(three, job).count(str(successor[1])) >= 2, "the successor has it")
            for proxy in proxies[:2]:
                proxy.open()
            await until(lambda: not cut.problems(), "it is connected again")
            await until(lambda: "lock.lost" in [record.message for record in caplog.records], "it is told")
            cut.release([(job, token)])
            await asyncio.sleep(0.3)
            assert values(three, job).count(str(successor[1])) >= 2
            for proxy in proxies:
                proxy.cut()


async def test_restarted_empty_one_after_the_other_the_lock_stays_with_its_holder(three):
    async with worker(three, ttl=10.0) as locks, worker(three) as other:
        job, token = pair()
        await locks.acquire([(job, token)])
        for server in three:
            server.kill()
            server.start()
            assert (await locks.acquire([pair()])).held  # somebody notices
            await until(lambda: not locks.problems() and not other.problems(), "it is back")
            await until(lambda: values(three, job).count(str(token)) >= 2, "a quorum knows the lock")
            assert (await other.acquire([busy := pair(job)])).busy == {busy[1]}


@pytest.mark.parametrize(("on_failure", "held"), [("fence", True), ("defer", False)])
async def test_when_servers_disagree_for_good_the_fence_goes_on_and_defer_comes_again_later(three, on_failure, held):
    async with worker(three, on_failure=on_failure) as locks:
        job, token = pair()
        for server, value in zip(three, ("one", "two"), strict=False):
            server.ask("SET", key(job), value, "PX", "20000")
        began = time.monotonic()
        taken = await locks.acquire([(job, token)])
        assert time.monotonic() - began < 20
        assert (taken.held, taken.busy) == (({token}, set()) if held else (set(), {token}))
        await until(lambda: values(three, job) == ["one", "two", None], "what it got on one is given back")
        three[0].flush()
        three[1].flush()
        assert (await locks.acquire([(job, token)])).held == {token}


async def test_no_server_there_at_first_is_no_fault_of_the_worker(three):
    for server in three:
        server.kill()
    async with worker(three, on_failure="fence") as locks:
        assert len((await locks.acquire([pair()])).held) == 1
        assert len(locks.problems()) == 4
        for server in three:
            server.start()
        await until(lambda: not locks.problems(), "they came")
    assert locked(three) == set()


async def test_of_five_two_may_be_gone_and_not_three(tmp_path):
    with running_redis(tmp_path, 5) as five:
        async with worker(five, on_failure="defer") as locks, worker(five, on_failure="defer") as other:
            job, token = pair()
            assert (await locks.acquire([(job, token)])).held == {token}
            five[0].kill()
            five[4].freeze()
            assert (await locks.acquire([mine := pair()])).held == {mine[1]}
            assert (await other.acquire([busy := pair(job)])).busy == {busy[1]}
            five[2].kill()
            with pytest.raises(LocksAway, match="2 of 5 servers answer"):
                await locks.acquire([pair()])
            five[2].start()
            await until(lambda: not away(locks) and not away(other), "three are a quorum")
            await until(lambda: values(five[1:4], job).count(str(token)) == 3, "which knows the lock")
            assert (await other.acquire([busy := pair(job)])).busy == {busy[1]}
            five[4].thaw()
