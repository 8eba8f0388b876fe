"""`--cluster`: a RabbitMQ and a Redis of one's own where none is configured, and what the processes learn of them."""

from dataclasses import dataclass

from turno.launcher import rabbitmq, redis_server
from turno.launcher.account import service_account
from turno.launcher.children import Child
from turno.launcher.config import Config
from turno.launcher.errors import LauncherError
from turno.launcher.keeper import Keeper
from turno.launcher.paths import Project
from turno.launcher.rabbitmq import PrivateRabbitMQ
from turno.launcher.redis_server import PrivateRedis
from turno.launcher.say import Console, _

# RUNLEVEL keeps Debian's packages from starting servers of their own, which nobody asked for.
INSTALL = "RUNLEVEL=1 apt-get install --no-install-recommends"


@dataclass
class Servers:
    """The private servers of a start; None: there is one that somebody configured."""

    rabbitmq: PrivateRabbitMQ | None
    redis: PrivateRedis | None

    @classmethod
    def wanted(cls, project: Project, config: Config) -> "Servers":
        """Those that nobody configured. Raises LauncherError when their programs are not on this machine."""
        broker = None if config.own_broker else rabbitmq.programs()
        redis = None if config.own_redis else redis_server.program()
        missing = [] if broker or config.own_broker else [("RabbitMQ", "rabbitmq-server")]
        missing += [] if redis or config.own_redis else [("Redis", "redis-server")]
        if missing:
            raise LauncherError(
                _(
                    "--cluster needs programs that this machine does not have: {names}. Install them (on Debian or"
                    " Ubuntu, as root: {command}), or name servers of yours in TURNO_MESSAGING__URLS and"
                    " TURNO_REDIS__URLS."
                ).format(
                    names=", ".join(name for name, _package in missing),
                    command=" ".join([INSTALL, *(package for _name, package in missing)]),
                )
            )
        account = service_account()
        return cls(
            PrivateRabbitMQ(project.server("rabbitmq"), project.logs, broker, account) if broker else None,
            PrivateRedis(project.server("redis"), project.logs, redis, account) if redis else None,
        )

    def begin(self, config: Config, keeper: Keeper, console: Console) -> None:
        """Start them, without waiting for RabbitMQ, which takes seconds; `config` names them from here on.

        Raises LauncherError, OSError.
        """
        values = {} if config.get("messaging", "transport") == "servicebus" else {config.TRANSPORT: "rabbitmq"}
        if self.redis:
            self.redis.prepare()
            self._start(keeper, self.redis.child())
            values[config.REDIS] = self.redis.url
        if self.rabbitmq:
            self.rabbitmq.prepare()
            epmd, node = self.rabbitmq.children()
            self._start(keeper, epmd)
            keeper.wait_for([epmd], self.rabbitmq.maps_ports, _("Starting RabbitMQ"))
            self._start(keeper, node)
            values[config.BROKER] = self.rabbitmq.url
        config.write_cluster(values)
        if self.redis:
            keeper.wait_for(keeper.servers, self.redis.answers, _("Starting Redis"))
            console.done(_("{name} on port {port}").format(name="Redis", port=self.redis.port))

    def wait(self, keeper: Keeper, console: Console) -> None:
        """Wait until RabbitMQ takes connections. Raises LauncherError when it does not."""
        if self.rabbitmq:
            keeper.wait_for(keeper.servers, self.rabbitmq.answers, _("Starting RabbitMQ"))
            console.done(_("{name} on port {port}").format(name="RabbitMQ", port=self.rabbitmq.port))

    @staticmethod
    def _start(keeper: Keeper, child: Child) -> None:
        keeper.servers.append(child)
        child.start()
        keeper.note()
