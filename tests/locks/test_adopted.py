"""The lock of a job that has started without: nobody is asked for it, until it has run for long."""

from tests.locks.house import key, locked, pair, until, values, worker
from tests.locks.test_joblocks import calls, servers

__all__ = ["servers"]


async def test_what_starts_and_ends_at_once_asks_no_server(servers):
    async with worker(servers) as locks:
        first = [calls(server) for server in servers]
        pairs = [pair() for _ in range(5)]
        locks.adopt(pairs)
        locks.release(pairs)
        other = pair()
        await locks.acquire([other])
        assert [calls(server) for server in servers] == [number + 1 for number in first]
        assert locked(servers) == {key(other[0])}


async def test_what_runs_for_long_is_locked_and_given_back_like_any_other(servers):
    async with worker(servers, ttl=3.0) as locks:
        job, token = pair()
        locks.adopt([(job, token)])
        await until(lambda: values(servers, job) == [str(token)] * len(servers), "it is locked")
        locks.release([(job, token)])
        await until(lambda: values(servers, job) == [None] * len(servers), "it is free")


async def test_no_job_starts_without_where_none_may_run_without_a_quorum(servers):
    async with worker(servers, on_failure="defer") as strict, worker(servers) as other:
        assert (strict.adopts, other.adopts) == (False, True)
