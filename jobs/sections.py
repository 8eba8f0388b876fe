"""The sections of the settings, with each key's type, default and bounds. Durations are seconds (`jobs.durations`)."""

import json
import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from jobs.bounds import ATTEMPTS, CONCURRENCY, PRIORITIES, is_queue, is_type
from jobs.databaseurl import parse_database_url
from jobs.durations import Duration
from jobs.ratelimit import Rate
from jobs.speech import _


def _postgres_url(value: str) -> str:
    parse_database_url(value)
    return value.strip()


def parse_queues(value: str) -> dict[str, int]:
    """Slots by queue from "default:4,critical:2". Raises ValueError naming the part that is wrong."""
    queues: dict[str, int] = {}
    for part in value.split(","):
        name, colon, slots = part.strip().partition(":")
        if not is_queue(name):
            expected = _("{part}: expected queue:slots, with a queue of a-z, 0-9, '.', '_' or '-'")
            raise ValueError(expected.format(part=repr(part.strip()[:120])))
        if not colon or not re.fullmatch("[0-9]{1,4}", slots) or not 1 <= int(slots) <= 1000:
            expected = _("{part}: expected queue:slots, with 1 to 1000 slots")
            raise ValueError(expected.format(part=repr(part.strip()[:120])))
        if name in queues:
            raise ValueError(_("{queue} appears twice").format(queue=repr(name)))
        queues[name] = int(slots)
    return queues


def _queues_text(value: str) -> str:
    parse_queues(value)
    return value


def _queue_name(value: str) -> str:
    if not is_queue(value):
        raise ValueError(
            _("expected the name of a queue: a-z, 0-9, '.', '_' or '-', and neither dead-letter nor …_error")
        )
    return value


def _type_name(value: str) -> str:
    if not is_type(value):
        raise ValueError(_("expected the name of a job type: a-z, 0-9, '.', '_' or '-'"))
    return value


def _module_name(value: str) -> str:
    if not all(part.isidentifier() for part in value.split(".")):
        raise ValueError(_("expected the name of a Python module, such as package.module"))
    return value


def _no_truth(value: Any) -> Any:
    """Python counts True as 1, a person does not."""
    if isinstance(value, bool):
        raise ValueError(_("expected a number"))
    return value


def text_list(value: Any) -> Any:
    """A list out of the text of a variable: JSON where it begins with "[", else the parts between commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return _json(value, _('expected a list: a,b or ["a", "b"]'))
    return [part.strip() for part in value.split(",") if part.strip()]


def table(value: Any) -> Any:
    """A table out of the text of a variable, which is JSON."""
    if not isinstance(value, str):
        return value
    return _json(value, _('expected a JSON object, such as {"report.generate": {"timeout": "5 min"}}'))


def _json(text: str, expected: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(expected) from None


PostgresUrl = Annotated[str, AfterValidator(_postgres_url)]
Queues = Annotated[str, AfterValidator(_queues_text)]
QueueName = Annotated[str, AfterValidator(_queue_name)]
TypeName = Annotated[str, AfterValidator(_type_name)]
ModuleName = Annotated[str, AfterValidator(_module_name)]
Modules = Annotated[tuple[ModuleName, ...], BeforeValidator(text_list)]
Texts = Annotated[tuple[str, ...], BeforeValidator(text_list)]
Count = Annotated[int, BeforeValidator(_no_truth)]
Number = Annotated[float, BeforeValidator(_no_truth)]
Positive = Annotated[Duration, Field(gt=0)]
Ratio = Annotated[float, BeforeValidator(_no_truth), Field(gt=0, le=1)]
Span = Annotated[Duration, Field(ge=0.1, le=86400)]  # a day at most
MOST_EXECUTIONS = 1_000_000  # that a breaker may be told to wait for
# From 1 ms on: PostgreSQL's own parameters are whole milliseconds, and 0 there switches a timeout off.
DatabaseTimeout = Annotated[Duration, Field(ge=0.001, le=86400)]


class Section(BaseModel):
    """A section: unknown keys are refused, values do not change while the process lives."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def Secret(default: Any, **limits: Any) -> Any:  # noqa: N802  (stands where a Field would)
    """A field whose value neither `repr` nor a message may show."""
    return Field(default, repr=False, json_schema_extra={"secret": True}, **limits)


def is_secret(model: Any, key: object) -> bool:
    """Whether `key` of the section `model` is declared with Secret."""
    field = model.model_fields.get(key)
    return field is not None and isinstance(field.json_schema_extra, dict) and "secret" in field.json_schema_extra


class Database(Section):
    """`direct_url`: a connection for LISTEN and migrations that passes no PgBouncer; naming it says that `url` does.

    `pooler` says so where there is no direct connection: then nobody listens, and everything is polled for.
    """

    url: PostgresUrl = Secret("postgresql://turno@127.0.0.1:5432/turno")
    direct_url: PostgresUrl | None = Secret(None)
    pooler: bool = False
    connect_timeout: Positive = 5.0
    statement_timeout: DatabaseTimeout = 30.0
    idle_in_transaction_timeout: DatabaseTimeout = 15.0
    pool_size: Count = Field(10, ge=1, le=200)

    @property
    def behind_a_pooler(self) -> bool:
        """Whether a PgBouncer stands before `url`."""
        return self.pooler or self.direct_url is not None

    @property
    def can_listen(self) -> bool:
        """Whether a session can be had that is nobody else's, for LISTEN."""
        return self.direct_url is not None or not self.pooler


class Worker(Section):
    """One worker process. `child_max_memory`: bytes of growth; `run_dir`: where live workers lock a file."""

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
    reconnect_max: Annotated[Duration, Field(ge=0.1)] = 5.0
    lock_expiry: Annotated[Duration, Field(ge=1)] = 30.0
    batch_size: Count = Field(100, ge=1, le=500)
    kill_grace: Annotated[Duration, Field(le=60)] = 1.0
    child_max_jobs: Count = Field(1000, ge=1, le=1_000_000)
    child_max_memory: Count = Field(256 * 1024**2, ge=16 * 1024**2)
    child_idle: Positive = 60.0
    import_timeout: Positive = 60.0
    run_dir: str = ""

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        if self.lease_renewal_interval * 2 > self.lease_duration:
            raise ValueError(_("lease_renewal_interval must be at most half of lease_duration"))
        if self.heartbeat_interval >= self.silent_after:
            raise ValueError(_("heartbeat_interval must be shorter than silent_after"))
        return self


class Scheduler(Section):
    """The promoter of due jobs. `misfire_grace`: how late a recurring job's instant may be and is not missed yet."""

    interval: Positive = 2.0
    misfire_grace: Positive = 60.0
    batch_size: Count = Field(200, ge=1, le=1000)


class Recovery(Section):
    """The return of jobs whose worker no longer answers, and, with a broker, of messages that are gone.

    `redispatch_enqueued_after`: announce again whatever has been Enqueued so long, whether its message is there or not.
    """

    interval: Positive = 10.0
    lease_grace_period: Annotated[Duration, Field(ge=1)] = 15.0  # handlers are told of a deadline within 0.25 s
    redispatch_enqueued_after: Positive | None = None
    batch_size: Count = Field(200, ge=1, le=1000)


class Retention(Section):
    """How long finished things are kept."""

    succeeded: Duration = 7 * 86400.0
    cancelled: Duration = 7 * 86400.0
    failed: Duration = 30 * 86400.0
    offline_workers: Duration = 86400.0
    dead_letters: Duration = 90 * 86400.0
    metrics: Annotated[Duration, Field(ge=86400)] = 35 * 86400.0  # the figures of a day look back so far
    audit: Duration = 180 * 86400.0
    interval: Span = 60.0
    batch_size: Count = Field(500, ge=1, le=5000)


class TypePolicy(Section):
    """What the configuration overrides for one type; None leaves what the handler declares."""

    queue: QueueName | None = None
    priority: Count | None = Field(None, ge=PRIORITIES[0], le=PRIORITIES[1])
    timeout: Positive | None = None
    max_attempts: Count | None = Field(None, ge=ATTEMPTS[0], le=ATTEMPTS[1])
    backoff_base: Duration | None = None
    backoff_cap: Duration | None = None
    max_running: Count | None = Field(None, ge=CONCURRENCY[0], le=CONCURRENCY[1])
    rate_limit: Rate | None = None
    breaker: bool | None = None
    breaker_ratio: Ratio | None = None
    breaker_window: Span | None = None
    breaker_minimum: Count | None = Field(None, ge=1, le=MOST_EXECUTIONS)
    breaker_open_for: Span | None = None


class Resilience(Section):
    """Retries, time limits and breakers, and `types`, the same by type."""

    max_attempts: Count = Field(5, ge=ATTEMPTS[0], le=ATTEMPTS[1])
    timeout: Positive = 600.0
    backoff_base: Duration = 15.0
    backoff_factor: Number = Field(2.0, ge=1, le=100)
    backoff_cap: Duration = 900.0
    jitter: Number = Field(0.2, ge=0, le=1)
    immediate_retries: Count = Field(2, ge=0, le=10)
    immediate_retry_delay: Duration = 0.5
    lost_limit: Count = Field(3, ge=1, le=100)
    unknown_type_grace: Positive = 3600.0
    breaker: bool = True
    breaker_ratio: Ratio = 0.5
    breaker_window: Span = 30.0
    breaker_minimum: Count = Field(10, ge=1, le=MOST_EXECUTIONS)
    breaker_open_for: Span = 30.0
    types: Annotated[dict[TypeName, TypePolicy], BeforeValidator(table)] = {}


class Limits(Section):
    """Sizes in bytes of UTF-8 JSON (or text), depths and counts."""

    payload: Count = Field(256 * 1024, ge=1024)
    result: Count = Field(256 * 1024, ge=1024)
    depth: Count = Field(64, ge=4, le=500)
    request: Count = Field(4 * 1024 * 1024, ge=1024)
    log_lines: Count = Field(10_000, ge=1)
    log_bytes: Count = Field(1024 * 1024, ge=1024)


class Api(Section):
    """Access to the API and what it accepts."""

    # Blanks around it would never arrive: HTTP strips a header's value, the login form its own.
    key: Annotated[str, StringConstraints(strip_whitespace=True, min_length=8)] | None = Secret(None)
    docs: bool = True
    unknown_types: Literal["refuse", "accept"] = "refuse"


class Samples(Section):
    """The four sample handlers."""

    enabled: bool = True


class Web(Section):
    """Where the web process listens, and what its cookies are signed with."""

    bind: str = "127.0.0.1"
    port: Count = Field(8080, ge=1, le=65535)
    secret_key: str | None = Secret(None, min_length=32)
    allowed_hosts: Texts = ("localhost", "127.0.0.1", "[::1]")
    secure_cookies: bool = False
