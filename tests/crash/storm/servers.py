"""The servers of a storm, its own: it may take each of them away. Before Django is set up: nothing here needs it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.storm.plan import PLACES
from tests.kit.cluster import Cluster
from tests.kit.processes import PROJECT, SHORT
from tests.kit.proxy import Proxy
from tests.kit.rabbitmq_server import RabbitNode, running_rabbitmq
from tests.kit.redis_server import RedisServer, running_redis
from turno.launcher import ports
from turno.launcher.postgres import QUICK, PrivatePostgres

HANDLERS = "tests.crash.storm.handlers"
# Leases that end soon, and a grace that a slow machine can keep.
LEASES = {
    "TURNO_WORKER__LEASE_DURATION": "2s",
    "TURNO_WORKER__LEASE_RENEWAL_INTERVAL": "400ms",
    "TURNO_RECOVERY__LEASE_GRACE_PERIOD": "2s",
    "TURNO_WORKER__KILL_GRACE": "500ms",
}
# For every process of a storm, its clients too.
HOUSE = {
    "TURNO_HANDLERS": f'["{HANDLERS}"]',
    "TURNO_SAMPLES__ENABLED": "false",
    "TURNO_LANG": "en",
    "TURNO_RESILIENCE__BREAKER_MINIMUM": "4",  # breakers open and close all the time
    "TURNO_RESILIENCE__BREAKER_OPEN_FOR": "1s",
    "TURNO_DATABASE__CONNECT_TIMEOUT": "3s",
}


class Fronted(Cluster):
    """A cluster of which every server is reached by a proxy, so that it can be cut off."""

    def __init__(self, node: RabbitNode, redis: list[RedisServer]) -> None:
        super().__init__(node, redis)
        self.broker_proxy = Proxy(node.url)
        self.redis_proxies = [Proxy(server.url) for server in redis]

    @property
    def env(self) -> dict[str, str]:
        return super().env | {
            "TURNO_MESSAGING__URLS": self.broker_proxy.url,
            "TURNO_REDIS__URLS": ",".join(proxy.url for proxy in self.redis_proxies),
        }

    def close(self) -> None:
        """End the proxies."""
        for proxy in (self.broker_proxy, *self.redis_proxies):
            proxy.close()


@dataclass
class Servers:
    """PostgreSQL, and what a cluster has besides; `env` is for every process that uses them."""

    folder: Path
    postgres: PrivatePostgres
    cluster: Fronted | None
    env: dict[str, str] = field(default_factory=dict)


@contextmanager
def servers_of(profile: str, folder: Path) -> Iterator[Servers]:
    """The servers of a profile, migrated and empty, with their data in `folder`; ended with the block."""
    if process := os.environ.get("PYTEST_XDIST_WORKER"):  # each test process has a part of the ports of its own
        ports.PRIVATE_RANGE = ports.PRIVATE_RANGE[int(process[2:]) :: 8]
    with ExitStack() as stack:
        options = {**QUICK, "max_connections": "300"}
        postgres = PrivatePostgres(folder / "postgres", options=options)
        stack.callback(postgres.stop, "immediate")
        postgres.start()
        postgres.fixed_port = postgres.port  # it comes back where everybody looks for it
        cluster = None
        if profile == "cluster":
            node = stack.enter_context(running_rabbitmq(folder / "rabbitmq"))
            redis = stack.enter_context(running_redis(folder, PLACES))
            cluster = Fronted(node, redis)
            stack.callback(cluster.close)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
        env = kept | SHORT | LEASES | HOUSE | {"TURNO_DATABASE__URL": postgres.url, "PYTHONPATH": str(PROJECT)}
        env |= cluster.env if cluster is not None else {}
        command = [sys.executable, "manage.py", "migrate", "-v", "0"]
        subprocess.run(command, cwd=PROJECT, env=env, check=True)
        yield Servers(folder, postgres, cluster, env)
