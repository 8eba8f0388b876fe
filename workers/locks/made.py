"""The locks that the settings ask for; and giving back those of the dead, where no engine runs."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from jobs.conf import Settings, conf
from jobs.leadership import HOUSEKEEPING
from workers.locks.base import JobLocks, NoLocks
from workers.locks.joblocks import RedisJobLocks, job_item
from workers.locks.redlock import Item, NamedLock, Redlock, Servers

log = logging.getLogger(__name__)
GIVING_BACK = 1.0  # seconds


class Locks(NamedTuple):
    """Those of a worker. `leader` lives on the connections of `jobs`: use it between that one's `start` and `close`."""

    jobs: JobLocks
    leader: NamedLock | None


def locks(running: Callable[[], Iterable[UUID]] | None = None) -> Locks:
    """As the settings say. `running`: the tokens of what this worker runs (see RedisJobLocks)."""
    settings = conf()
    if not settings.redlock:
        return Locks(NoLocks(), None)
    nodes = _nodes(settings)
    drift, worker = settings.redis.drift, settings.worker
    jobs = RedisJobLocks(
        nodes,
        Redlock(nodes, ttl=worker.lock_expiry, drift=drift),
        on_failure=settings.redis.on_failure,
        running=running,
    )
    leader = Redlock(nodes, ttl=worker.leadership_lease, drift=drift)
    return Locks(jobs, NamedLock(leader, leader_key(nodes.prefix)))


def leader_key(prefix: str) -> str:
    """The key of the leader's lock."""
    return f"{prefix}leader:{HOUSEKEEPING}"


def _nodes(settings: Settings) -> Servers:
    from workers.locks.redis_nodes import Nodes

    return Nodes(settings.redis.urls, prefix=settings.redis.key_prefix, timeout=settings.redis.node_timeout)


def give_back(pairs: Sequence[tuple[UUID, UUID]], *, leader: UUID | None = None) -> None:
    """Delete the locks of executions (job, dispatch token) that are over with their owner, and that of a dead leader.

    On connections of its own, in any thread without a loop, for at most GIVING_BACK seconds. Never raises: what stays
    ends with its TTL, and until then makes who claims the job next wait.
    """
    settings = conf()
    if not settings.redlock or not (pairs or leader):
        return
    prefix = settings.redis.key_prefix
    items = [job_item(prefix, job, token) for job, token in pairs]
    if leader is not None:
        items.append((leader_key(prefix), str(leader)))
    try:
        asyncio.run(_delete(_nodes(settings), items))
    except TimeoutError:
        log.warning("locks.not_released", extra={"count": len(items)})
    except Exception:
        log.exception("locks.not_released", extra={"count": len(items)})


async def _delete(nodes: Servers, items: Sequence[Item]) -> None:
    nodes.begin()
    try:
        async with asyncio.timeout(GIVING_BACK):
            await nodes.settled(GIVING_BACK / 2)
            await nodes.release(items)
    finally:
        await nodes.close()
