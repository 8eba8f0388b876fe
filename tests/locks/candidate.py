"""A process that would lead: `python -m tests.locks.candidate NAME LOG TTL URL...` appends `NAME instant` to LOG, the
instant on CLOCK_BOOTTIME, each time it has found that it leads; and `ready-NAME instant` when it stands."""

import asyncio
import os
import sys
import time
from uuid import uuid4

import django

INTERVAL = 0.05  # seconds between two elections


async def stand(name: str, log: str, ttl: float, urls: list[str]) -> None:
    from tests.locks.house import PREFIX, TIMEOUT
    from workers.clock import boottime
    from workers.leadership import Leadership
    from workers.locks.made import leader_key
    from workers.locks.redis_nodes import Nodes
    from workers.locks.redlock import NamedLock, Redlock

    nodes = Nodes(urls, prefix=PREFIX, timeout=TIMEOUT)
    nodes.begin()
    lock = NamedLock(Redlock(nodes, ttl=ttl, drift=0.01), leader_key(PREFIX))
    leader = Leadership(uuid4(), lock, lease=ttl, on_failure="defer")
    leader.start()
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(word: str) -> None:
        os.write(file, f"{word} {boottime():.6f}\n".encode())

    def elections() -> None:
        note(f"ready-{name}")
        while os.getppid() == parent:
            if leader.leads():
                note(name)
            time.sleep(INTERVAL)

    await nodes.settled()
    parent = os.getppid()
    await asyncio.to_thread(elections)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "turno.settings"
    django.setup()
    asyncio.run(stand(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]))
