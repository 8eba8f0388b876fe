"""The typed settings, one object: defaults < `turno.toml` < environment (`TURNO_WORKER__LEASE_DURATION=60s`).

`conf()` gives the settings of this process. A wrong or unknown key raises ConfigurationError, which names each
key, what was expected and, for an unknown one, the nearest that exists.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from pydantic import ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from jobs import sections, sections_broker, sections_recurring
from jobs.conf_problems import sentence, unknown_variables
from jobs.conf_sources import PREFIX, Sources
from jobs.speech import _


class ConfigurationError(Exception):
    """The configuration can't be used; the message has one line a problem, with the key and what was expected."""


class Settings(BaseSettings):
    """Every setting of Turno, section by section; see `jobs.sections` (and `sections_broker`) for the keys."""

    # Variables are text here: lists and tables are read by the types that want them, with a sentence of their own.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        enable_decoding=False,
        extra="forbid",
        frozen=True,
    )

    database: sections.Database = sections.Database()
    messaging: sections_broker.Messaging = sections_broker.Messaging()
    redis: sections_broker.Redis = sections_broker.Redis()
    worker: sections.Worker = sections.Worker()
    scheduler: sections.Scheduler = sections.Scheduler()
    recovery: sections.Recovery = sections.Recovery()
    retention: sections.Retention = sections.Retention()
    resilience: sections.Resilience = sections.Resilience()
    limits: sections.Limits = sections.Limits()
    api: sections.Api = sections.Api()
    samples: sections.Samples = sections.Samples()
    recurring_jobs: sections_recurring.RecurringJobs = {}
    web: sections.Web = sections.Web()
    handlers: sections.Modules = ()
    python_path: sections.Texts = ()
    apps: sections.Modules = ()

    @property
    def redlock(self) -> bool:
        """Whether locks are taken in Redis."""
        wanted = self.redis.locks == "on" or (self.redis.locks == "auto" and self.messaging.broker)
        return wanted and bool(self.redis.urls)

    @model_validator(mode="after")
    def _locks_outlive_a_call(self) -> Self:
        if self.redlock and self.redis.node_timeout * 3 > min(self.worker.lock_expiry, self.worker.leadership_lease):
            words = _("redis.node_timeout must be at most a third of worker.lock_expiry and of worker.leadership_lease")
            raise ValueError(words)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The constructor's arguments alone: `load` merges the sources, so that `overridden` meets none of them."""
        return (init_settings,)


def load() -> Settings:
    """Read the settings from the file and the environment. Raises ConfigurationError with every problem at once."""
    sources = Sources(Settings)
    problems = [*sources.problems, *unknown_variables(Settings, sources)]
    try:
        settings = Settings(**sources.values)
    except ValidationError as error:
        problems += [sentence(item, Settings, sources) for item in error.errors()]
    if problems:
        # Pydantic's own error is not chained: it shows what was put in, secrets included.
        raise ConfigurationError("\n".join(dict.fromkeys(problems))) from None
    return settings


_current: list[Settings] = []


def conf() -> Settings:
    """The settings of this process, read at the first call. Raises ConfigurationError."""
    if not _current:
        _current.append(load())
    return _current[-1]


@contextmanager
def overridden(**changes: Any) -> Iterator[Settings]:
    """For tests: the settings with some keys of some sections changed, `overridden(worker={"poll_interval": 0.1})`."""
    base = conf().model_dump()
    for section, values in changes.items():
        base[section] = {**base[section], **values} if isinstance(values, dict) else values
    changed = Settings(**base)
    _current.append(changed)
    try:
        yield changed
    finally:
        _current[:] = [settings for settings in _current if settings is not changed]
