"""The few settings that the launcher itself needs, from the same places as the product reads them.

Environment over `.env` over `turno.toml` over the default. The product validates them when it starts.
"""

import os
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from turno.launcher import envfile
from turno.launcher.cluster import ROLE
from turno.launcher.errors import LauncherError
from turno.launcher.paths import Project
from turno.launcher.say import _

DEFAULT_PORT = 8080
PASSWORD = "DJANGO_SUPERUSER_PASSWORD"  # noqa: S105  of the first user, by the name that Django gives the variable
SECRETS = {"TURNO_API__KEY": 24, "TURNO_WEB__SECRET_KEY": 48, PASSWORD: 15}  # bytes of randomness


class Config:
    """Settings as they stand when it is made. Raises LauncherError for a file that can't be read."""

    TRANSPORT, BROKER, REDIS = "TURNO_MESSAGING__TRANSPORT", "TURNO_MESSAGING__URLS", "TURNO_REDIS__URLS"

    def __init__(self, project: Project, environ: Mapping[str, str] | None = None, port: int | None = None) -> None:
        self.project = project
        self.environ = dict(os.environ if environ is None else environ)
        self.file = envfile.read(project.env_file)
        self.toml = _toml(Path(self.variable("TURNO_CONFIG") or project.root / "turno.toml"))
        self.chosen_port = port

    def variable(self, name: str) -> str:
        """A variable of the environment or of `.env`, "" when it is in neither."""
        return self.environ.get(name) or self.file.get(name) or ""

    def get(self, section: str, key: str) -> str:
        """A setting as text, "" when it is set nowhere."""
        if value := self.variable(f"TURNO_{section}__{key}".upper()):
            return value
        table = self.toml.get(section)
        return str(table[key]) if isinstance(table, dict) and key in table else ""

    @property
    def port(self) -> int:
        """The web port. Raises LauncherError when it is no port."""
        value = str(self.chosen_port or self.get("web", "port") or DEFAULT_PORT)
        if not value.isascii() or not value.isdigit() or not 0 < int(value) < 65536:
            raise LauncherError(_("web.port: {value} is not a port (1 to 65535).").format(value=value))
        return int(value)

    @property
    def bind(self) -> str:
        """The address that the web process listens on."""
        return self.get("web", "bind") or "127.0.0.1"

    @property
    def address(self) -> str:
        """The web address as this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.bind, self.bind)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def key(self) -> str:
        """The root key."""
        return self.get("api", "key")

    @property
    def own_database(self) -> str:
        """The address of the server that somebody configured; "" when the private one is to be used."""
        url = self.get("database", "url") or self.variable("JOBS_DATABASE_URL") or self.variable("DATABASE_URL")
        return "" if url == "" or is_private(url) else url

    @property
    def own_broker(self) -> bool:
        """Whether somebody configured a broker of their own."""
        return self.get("messaging", "transport") == "servicebus" or _is_anothers(self.get("messaging", "urls"))

    @property
    def own_redis(self) -> bool:
        """Whether somebody configured Redis servers of their own."""
        return _is_anothers(self.get("redis", "urls"))

    @property
    def private_password(self) -> str | None:
        """The private server's password as `.env` has it: data that was removed is made anew with it."""
        url = self.get("database", "url")
        return urlsplit(url).password if is_private(url) else None

    def write_secrets(self) -> bool:
        """Put random secrets into `.env` where nothing is set; True when the file changed. Raises OSError.

        A variable that somebody left empty on purpose stays empty.
        """
        missing = [name for name in SECRETS if not self._named(name)]
        return self._write({name: secrets.token_urlsafe(SECRETS[name]) for name in missing})

    def write_database(self, url: str) -> bool:
        """Put the private server's address into `.env`; True when the file changed. Raises OSError."""
        return self._write({"TURNO_DATABASE__URL": url} if self.file.get("TURNO_DATABASE__URL") != url else {})

    def write_cluster(self, values: dict[str, str]) -> bool:
        """Put what names broker and Redis into `.env`; True when the file changed. Raises OSError."""
        return self._write({name: value for name, value in values.items() if self.file.get(name) != value})

    def forget_cluster(self) -> bool:
        """Take the private broker and Redis of an earlier start out of `.env`; True when they stood there.

        Raises OSError.
        """
        private = [name for name in (self.BROKER, self.REDIS) if is_private(self.file.get(name, ""))]
        if self.BROKER in private:
            private.append(self.TRANSPORT)
        return self._write(dict.fromkeys(private, ""))

    def _named(self, variable: str) -> bool:
        section, _sep, key = variable.removeprefix("TURNO_").lower().partition("__")
        return variable in self.environ or variable in self.file or self.get(section, key) != ""

    def _write(self, values: dict[str, str]) -> bool:
        if values:
            envfile.update(self.project.env_file, values)
            self.file.update(values)
        envfile.protect(self.project.env_file)
        return bool(values)


def is_private(url: str) -> bool:
    """Whether an address is that of the launcher's own server."""
    try:
        return urlsplit(url).username == ROLE
    except ValueError:  # no address at all
        return False


def _is_anothers(urls: str) -> bool:
    return urls != "" and not is_private(urls)


def _toml(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LauncherError(_("{path} can't be read: {reason}").format(path=path, reason=error)) from error
