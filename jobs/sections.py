"""The sections of the settings, with each key's type, default and bounds. Durations are seconds (`jobs.durations`)."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from jobs.durations import Duration

SECRET_KEYS = frozenset({"url", "direct_url", "key", "secret_key"})
QUEUE_NAME = re.compile(r"[a-z0-9._-]{1,100}")


def _postgres_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        raise ValueError("expected postgresql://user:password@host:port/database")
    _ = parts.port  # raises ValueError for a port that is no number
    return value


def parse_queues(value: str) -> dict[str, int]:
    """Slots by queue from "default:4,critical:2". Raises ValueError naming the part that is wrong."""
    queues: dict[str, int] = {}
    for part in value.split(","):
        name, colon, slots = part.strip().partition(":")
        if not QUEUE_NAME.fullmatch(name) or name == "dead-letter" or name.endswith("_error"):
            raise ValueError(f"{part.strip()!r}: expected queue:slots, with a queue of a-z, 0-9, '.', '_' or '-'")
        if not colon or not slots.isascii() or not slots.isdigit() or not 1 <= int(slots) <= 1000:
            raise ValueError(f"{part.strip()!r}: expected queue:slots, with 1 to 1000 slots")
        if name in queues:
            raise ValueError(f"{name!r} stands twice")
        queues[name] = int(slots)
    return queues


def _queues_text(value: str) -> str:
    parse_queues(value)
    return value


PostgresUrl = Annotated[str, AfterValidator(_postgres_url)]
Queues = Annotated[str, AfterValidator(_queues_text)]
Positive = Annotated[Duration, Field(gt=0)]


class Section(BaseModel):
    """A section: unknown keys are refused, values do not change while the process lives."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Database(Section):
    """`direct_url`: a connection that does not pass PgBouncer, for LISTEN and migrations; naming it says that `url` does."""

    url: PostgresUrl = "postgresql://turno@127.0.0.1:5432/turno"
    direct_url: PostgresUrl | None = None
    connect_timeout: Positive = 5.0
    statement_timeout: Positive = 30.0
    idle_in_transaction_timeout: Positive = 15.0
    pool_size: int = Field(10, ge=1, le=200)


class Messaging(Section):
    """What carries the work; in this version PostgreSQL itself."""

    transport: Literal["postgres"] = "postgres"
    queue_prefix: str = Field("turno", pattern=r"^[a-z0-9-]{1,40}$")


class Worker(Section):
    """One worker process."""

    queues: Queues = "default:4,critical:2,reports:2"
    lease_duration: Annotated[Duration, Field(ge=1)] = 60.0
    lease_renewal_interval: Positive = 10.0
    heartbeat_interval: Positive = 5.0
    silent_after: Positive = 15.0
    shutdown_timeout: Duration = 30.0
    poll_interval: Positive = 1.0
    cancel_poll_interval: Positive = 0.5
    progress_interval: Positive = 1.0
    leadership_lease: Annotated[Duration, Field(ge=1)] = 15.0
    reconnect_max: Positive = 5.0
    batch_size: int = Field(100, ge=1, le=500)

    @model_validator(mode="after")
    def _renewed_in_time(self) -> Self:
        if self.lease_renewal_interval * 2 > self.lease_duration:
            raise ValueError("lease_renewal_interval must be at most half of lease_duration")
        return self


class Scheduler(Section):
    """The promoter of due jobs."""

    interval: Positive = 2.0
    batch_size: int = Field(200, ge=1, le=1000)


class Recovery(Section):
    """The return of jobs whose worker no longer answers."""

    interval: Positive = 10.0
    lease_grace_period: Positive = 15.0
    batch_size: int = Field(200, ge=1, le=1000)


class Retention(Section):
    """How long finished things are kept."""

    succeeded: Duration = 7 * 86400.0
    cancelled: Duration = 7 * 86400.0
    failed: Duration = 30 * 86400.0
    offline_workers: Duration = 86400.0
    dead_letters: Duration = 90 * 86400.0
    metrics: Duration = 35 * 86400.0
    interval: Positive = 60.0
    batch_size: int = Field(500, ge=1, le=5000)


class TypePolicy(Section):
    """What the configuration overrides for one type; None leaves what the handler declares."""

    queue: str | None = Field(None, pattern=r"^[a-z0-9._-]{1,100}$")
    priority: int | None = Field(None, ge=-10, le=10)
    timeout: Positive | None = None
    max_attempts: int | None = Field(None, ge=1, le=100)
    backoff_base: Duration | None = None
    backoff_cap: Duration | None = None


class Resilience(Section):
    """Retries and time limits, and `types`, the same by type."""

    max_attempts: int = Field(5, ge=1, le=100)
    timeout: Positive = 600.0
    backoff_base: Duration = 15.0
    backoff_factor: float = Field(2.0, ge=1, le=100)
    backoff_cap: Duration = 900.0
    jitter: float = Field(0.2, ge=0, le=1)
    immediate_retries: int = Field(2, ge=0, le=10)
    immediate_retry_delay: Duration = 0.5
    lost_limit: int = Field(3, ge=1, le=100)
    types: dict[str, TypePolicy] = {}


class Limits(Section):
    """Sizes in bytes of UTF-8 JSON (or text), depths and counts."""

    payload: int = Field(256 * 1024, ge=1024)
    result: int = Field(256 * 1024, ge=1024)
    depth: int = Field(64, ge=4, le=500)
    request: int = Field(4 * 1024 * 1024, ge=1024)
    log_lines: int = Field(10_000, ge=1)
    log_bytes: int = Field(1024 * 1024, ge=1024)


class Api(Section):
    """Access to the API and what it accepts."""

    key: str | None = Field(None, min_length=8)
    docs: bool = True
    unknown_types: Literal["refuse", "accept"] = "refuse"


class Samples(Section):
    """The four sample handlers."""

    enabled: bool = True


class Web(Section):
    """Where the web process listens, and what its cookies are signed with."""

    bind: str = "127.0.0.1"
    port: int = Field(8080, ge=1, le=65535)
    secret_key: str | None = Field(None, min_length=32)
    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    secure_cookies: bool = False
