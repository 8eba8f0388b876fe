"""The typed settings, one object: defaults < `turno.toml` < environment (`TURNO_WORKER__LEASE_DURATION=60s`).

`conf()` gives the settings of this process. A wrong or unknown key raises ConfigurationError, which names each
key, what was expected and, for an unknown one, the nearest that exists.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from jobs import sections

PREFIX = "TURNO_"
# Variables that are ours and are not settings: the files' names, the role of the process, the tests' servers.
RESERVED = {"TURNO_CONFIG", "TURNO_PROCESS", "TURNO_LANG"}
RESERVED_PREFIXES = ("TURNO_TEST_",)
# Names that the two older systems used, and the setting that each one is now.
ALIASES = {"DATABASE_URL": ("database", "url"), "JOBS_DATABASE_URL": ("database", "url")}


class ConfigurationError(Exception):
    """The configuration can't be used; the message has one line a problem, with the key and what was expected."""


class AliasSource(PydanticBaseSettingsSource):
    """Settings named by the variables of the older systems; weaker than every other source."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, (section, key) in ALIASES.items():
            if os.environ.get(name):
                found.setdefault(section, {})[key] = os.environ[name]
        return found


class Settings(BaseSettings):
    """Every setting of Turno, section by section; see `jobs.sections` for the keys and their defaults."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, env_ignore_empty=True
    )

    database: sections.Database = sections.Database()
    messaging: sections.Messaging = sections.Messaging()
    worker: sections.Worker = sections.Worker()
    scheduler: sections.Scheduler = sections.Scheduler()
    recovery: sections.Recovery = sections.Recovery()
    retention: sections.Retention = sections.Retention()
    resilience: sections.Resilience = sections.Resilience()
    limits: sections.Limits = sections.Limits()
    api: sections.Api = sections.Api()
    samples: sections.Samples = sections.Samples()
    web: sections.Web = sections.Web()
    handlers: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = TomlConfigSettingsSource(settings_cls, toml_file=_config_file())
        return init_settings, EnvSettingsSource(settings_cls), file, AliasSource(settings_cls)


def _config_file() -> Path:
    named = os.environ.get("TURNO_CONFIG")
    return Path(named) if named else Path(__file__).resolve().parent.parent / "turno.toml"


def _nearest(name: str, known: list[str]) -> str:
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _fields_at(location: tuple[Any, ...]) -> list[str]:
    model: Any = Settings
    for part in location[:-1]:
        field = model.model_fields.get(part) if isinstance(model, type) else None
        model = field.annotation if field else None
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    return list(model.model_fields) if is_model else []


def _line(error: Mapping[str, Any]) -> str:
    location = tuple(error["loc"])
    key = ".".join(str(part) for part in location) or "settings"
    variable = PREFIX + "__".join(str(part).upper() for part in location)
    if error["type"] == "extra_forbidden":
        return f"{key} (or {variable}): there is no such key{_nearest(str(location[-1]), _fields_at(location))}"
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = "(hidden)" if location and location[-1] in sections.SECRET_KEYS else repr(error["input"])[:80]
    return f"{key} (or {variable}): {message}; got {shown}"


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    lines = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in RESERVED or name.startswith(RESERVED_PREFIXES):
            continue
        head, _, rest = name.removeprefix(PREFIX).partition("__")
        if head.lower() not in Settings.model_fields:
            lines.append(f"{name}: there is no such section{_nearest(PREFIX + head, known)}")
        elif rest and not rest.replace("_", "").isalnum():
            lines.append(f"{name}: expected {PREFIX}SECTION__KEY")
    return lines


def load() -> Settings:
    """Read the settings from the file and the environment. Raises ConfigurationError with every problem at once."""
    problems = _unknown_variables(os.environ)
    file = _config_file()
    if os.environ.get("TURNO_CONFIG") and not file.is_file():
        problems.append(f"TURNO_CONFIG: there is no file {file}")
    if problems:
        raise ConfigurationError("\n".join(problems))
    try:
        return Settings()
    except ValidationError as error:
        raise ConfigurationError("\n".join(_line(item) for item in error.errors())) from error
    except (ValueError, OSError) as error:  # not TOML, not readable, or a variable that is not JSON
        raise ConfigurationError(str(error).replace("\n", " ")) from error


_current: list[Settings] = []


def conf() -> Settings:
    """The settings of this process, read at the first call. Raises ConfigurationError."""
    if not _current:
        _current.append(load())
    return _current[-1]


@contextmanager
def overridden(**changes: dict[str, Any]) -> Iterator[Settings]:
    """For tests: the settings with some keys of some sections changed, `overridden(worker={"poll_interval": 0.1})`."""
    base = conf().model_dump()
    for section, values in changes.items():
        base[section] = {**base[section], **values} if isinstance(values, dict) else values
    changed = Settings(**base)
    _current.append(changed)
    try:
        yield changed
    finally:
        _current.remove(changed)
