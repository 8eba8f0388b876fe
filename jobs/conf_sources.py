"""Where settings come from: `turno.toml`, the environment and the names of older systems; what each one says."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_settings import BaseSettings, EnvSettingsSource

from jobs.speech import _

PREFIX = "TURNO_"
# Names that the two older systems used, and the setting that each one is now; the later one wins.
ALIASES = {"DATABASE_URL": ("database", "url"), "JOBS_DATABASE_URL": ("database", "url")}


class Sources:
    """What the sources say, merged as defaults < aliases < file < environment; `problems` of the file itself.

    Locations are tuples of keys, as Pydantic names them.
    """

    def __init__(self, model: type[BaseSettings]) -> None:
        self.problems: list[str] = []
        self._named = os.environ.get("TURNO_CONFIG")
        self.path = Path(self._named) if self._named else Path(__file__).resolve().parent.parent / "turno.toml"
        self.file = self._read_file()
        self.aliases = {alias: value for alias in ALIASES if (value := os.environ.get(alias))}
        self.environment = {name.upper(): name for name, value in os.environ.items() if value}
        self.values: dict[str, Any] = {}
        for alias, value in self.aliases.items():
            section, key = ALIASES[alias]
            self.values = _merged(self.values, {section: {key: value}})
        self.values = _merged(self.values, self.file)
        source = EnvSettingsSource(model)
        # A variable that names a section alone is refused by name, and must not hide those of its keys.
        source.env_vars = {name: value for name, value in source.env_vars.items() if not _is_section(model, name)}
        self.values = _merged(self.values, source())

    def origin(self, location: tuple[Any, ...]) -> str | None:
        """The variable or file that set what stands there; None when nothing did."""
        below = variable(location) + "__"  # of a key, where only a section has keys below it
        inside = (name for upper, name in self.environment.items() if upper.startswith(below))
        if len(location) > 1 and (name := next(inside, None)):
            return name
        for length in range(len(location), 0, -1):
            if name := self.environment.get(variable(location[:length])):
                return name
        here: Any = self.file
        for part in location:
            if not isinstance(here, Mapping) or part not in here:
                break
            here = here[part]
            if not isinstance(here, Mapping):
                return self.path.name
        else:
            if location:
                return self.path.name
        return next((alias for alias in reversed(self.aliases) if ALIASES[alias] == location[:2]), None)

    def _read_file(self) -> dict[str, Any]:
        if not self.path.exists():
            if self._named:
                self.problems.append(_("TURNO_CONFIG: there is no file {path}").format(path=self.path))
            return {}
        try:
            return tomllib.loads(self.path.read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError:
            problem = _("{path} is not UTF-8 text").format(path=self.path)
        except (ValueError, RecursionError) as error:
            problem = _("{path} is not TOML: {reason}").format(path=self.path, reason=_first_line(error))
        except OSError as error:
            problem = _("{path} can't be read: {reason}").format(path=self.path, reason=error.strerror)
        self.problems.append(problem)
        return {}


def _is_section(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name.removeprefix(PREFIX.lower()).rstrip("_"))
    annotation = field.annotation if field else None
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def variable(location: tuple[Any, ...]) -> str:
    """The variable that names the setting which stands there."""
    return PREFIX + "__".join(str(part) for part in location).upper()


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
