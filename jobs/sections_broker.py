"""The sections of the settings for what stands beside PostgreSQL in the cluster profile: a broker, and Redis."""

import re
from collections.abc import Container, Iterable
from typing import Annotated, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.durations import Duration
from jobs.sections import Count, Number, Positive, Secret, Section, text_list
from jobs.serveraddress import ServerAddress, parse_address, parse_connection_string
from jobs.speech import _

PREFIX = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
QUORUMS = (0, 1, 3, 5)
KEYS = ("SharedAccessKeyName", "SharedAccessKey", "SharedAccessSignature")  # the first two, or the last
# Of redis-py's options those that are not ours to choose; with an unknown one it fails at its first connection.
REDIS_OPTIONS = {"db": r"\d{1,9}", "username": ".*", "password": ".*", "client_name": ".*"}
TLS_OPTIONS = dict.fromkeys(("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"), ".+") | {
    "ssl_cert_reqs": "none|optional|required", "ssl_check_hostname": "(?i:true|false)"
}  # fmt: skip


def _servers(values: Iterable[str], form: str, schemes: Container[str]) -> list[ServerAddress]:
    """Raises ValueError with `form`: what was expected."""
    if not all(value.partition("://")[0] in schemes for value in values):
        raise ValueError(form)
    try:
        return [parse_address(value) for value in values]
    except ValueError:
        raise ValueError(_("{form}, where special characters are written as %xx").format(form=form)) from None


def _amqp_urls(values: tuple[str, ...]) -> tuple[str, ...]:
    form = _("expected addresses such as amqp://user:password@127.0.0.1:5672/")
    _servers(values, form, ("amqp", "amqps"))
    if any((parts.username is None) != (parts.password is None) for parts in map(urlsplit, values)):
        raise ValueError(form)  # pika takes both or none
    return values


def _redis_urls(values: tuple[str, ...]) -> tuple[str, ...]:
    form = _("expected addresses such as redis://127.0.0.1:6379/0")
    servers = _servers(values, form, ("redis", "rediss", "unix"))
    for parts in map(urlsplit, values):
        known = REDIS_OPTIONS | (TLS_OPTIONS if parts.scheme == "rediss" else {})
        options = parse_qsl(parts.query, keep_blank_values=True)
        if not all(name in known and re.fullmatch(known[name], value) for name, value in options):
            raise ValueError(_("{form}, with no options but {names}").format(form=form, names=", ".join(known)))
        if parts.scheme != "unix" and not re.fullmatch(r"/?|/\d{1,9}", parts.path):
            raise ValueError(form)
    if len(values) not in QUORUMS:
        raise ValueError(_("expected 1, 3 or 5 servers; of an even number no more may fail than of one less"))
    if len({server.name for server in servers}) < len(servers):
        raise ValueError(_("expected servers that are independent; one of them appears twice"))
    return values


def _connection_string(value: str) -> str:
    form = _("expected a connection string: Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…")
    parts = parse_connection_string(value)
    _servers([parts.get("Endpoint", "")], form, ("sb",))
    keys = [name for name in KEYS if parts.get(name)]
    whole = all("=" in part for part in value.strip().rstrip(";").split(";"))
    if not whole or keys not in (list(KEYS[:2]), list(KEYS[2:])):
        raise ValueError(form)
    if "EntityPath" in parts:  # the key of one queue, where all are meant
        raise ValueError(_("{form}, of the namespace and without EntityPath").format(form=form))
    return value.strip()


def _prefix(value: str) -> str:
    if not PREFIX.fullmatch(value):
        raise ValueError(_("expected 1 to 40 of a-z, 0-9, '.', '_' or '-', a letter or digit first"))
    return value


AmqpUrls = Annotated[tuple[str, ...], BeforeValidator(text_list), AfterValidator(_amqp_urls)]
RedisUrls = Annotated[tuple[str, ...], BeforeValidator(text_list), AfterValidator(_redis_urls)]
ConnectionString = Annotated[str, AfterValidator(_connection_string)]
QueuePrefix = Annotated[str, AfterValidator(_prefix)]


class Messaging(Section):
    """What carries the work: PostgreSQL itself, or a broker to which the outbox is published.

    `urls`: nodes of one RabbitMQ cluster, tried in turn. `queue_type` is that of new queues; an existing one keeps its
    own. `error_queue_length`: messages that each queue of dead letters and of poisoned messages holds, the oldest
    dropped. `outbox_lease`: how long a relay has for the rows it took.
    """

    transport: Literal["postgres", "rabbitmq", "servicebus"] = "postgres"
    urls: AmqpUrls = Secret(())
    azure_connection_string: ConnectionString | None = Secret(None)
    queue_prefix: QueuePrefix = "turno"
    queue_type: Literal["classic", "quorum"] = "classic"
    heartbeat: Annotated[Duration, Field(ge=1, le=600)] = 30.0
    connect_timeout: Positive = 5.0
    publish_timeout: Annotated[Duration, Field(ge=0.1, le=300)] = 10.0
    error_queue_length: Count = Field(100_000, ge=1, le=1_000_000_000)
    outbox_interval: Positive = 1.0
    outbox_batch_size: Count = Field(200, ge=1, le=1000)
    outbox_lease: Annotated[Duration, Field(ge=1)] = 60.0
    outbox_retry_base: Positive = 2.0
    outbox_retry_cap: Positive = 300.0

    @property
    def broker(self) -> bool:
        """Whether work goes by a broker, so that the outbox is written."""
        return self.transport != "postgres"

    @model_validator(mode="after")
    def _addressed(self) -> Self:
        if self.transport == "rabbitmq" and not self.urls:
            raise ValueError(_("transport rabbitmq needs messaging.urls, such as amqp://user:password@127.0.0.1:5672/"))
        if self.transport == "servicebus" and self.azure_connection_string is None:
            raise ValueError(_("transport servicebus needs messaging.azure_connection_string"))
        if self.publish_timeout * 2 > self.outbox_lease:
            raise ValueError(_("publish_timeout must be at most half of outbox_lease"))
        return self


class Redis(Section):
    """Redis servers, for live screens and, with `locks`, for Redlock; with none PostgreSQL carries both.

    `locks`: "auto" takes them when a broker carries the work. `on_failure`: without a quorum "fence" goes on, guarded
    by the database alone, "defer" takes no work and elects no leader until there is one. `node_timeout`: how long one
    server may take for an answer.
    """

    urls: RedisUrls = Secret(())
    key_prefix: str = Field("turno:", max_length=64)
    locks: Literal["auto", "on", "off"] = "auto"
    on_failure: Literal["fence", "defer"] = "fence"
    node_timeout: Annotated[Duration, Field(ge=0.005, le=5)] = 0.05
    drift: Number = Field(0.01, ge=0, le=0.5)

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.locks == "on" and not self.urls:
            raise ValueError(_("locks need redis.urls, such as redis://127.0.0.1:6379/0"))
        return self
