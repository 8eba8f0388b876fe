"""Addresses of the servers beside PostgreSQL: amqp://, redis://, unix:// and sb://, read in one place.

A message here never repeats a part of the address: where one is malformed, its password may stand anywhere.
"""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

PORTS = {"amqp": 5672, "amqps": 5671, "redis": 6379, "rediss": 6379, "sb": 5671}
TLS = ("amqps", "rediss", "sb")
MALFORMED = "not an address"  # for programmers: settings say what was expected


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """How to reach a server, without user and password. `path`: of its socket in the file system, empty elsewhere."""

    host: str
    port: int
    tls: bool
    path: str = ""

    @property
    def name(self) -> str:
        """What people know it by: host:port, or the path of its socket."""
        return self.path or f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_address(url: str) -> ServerAddress:
    """Where an address leads. Raises ValueError for one that no client reads, or not all of them alike."""
    try:
        parts = urlsplit(url)
        port = PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:  # Python's own words quote the address
        raise ValueError(MALFORMED) from None
    # An unescaped "/", "?", "#" or "@" of the password: the rest of it would be taken for something to show.
    torn = "@" in parts.path + parts.query or parts.fragment or parts.netloc.count("@") > 1
    if torn or not url.isprintable() or " " in url:
        raise ValueError(MALFORMED)
    if parts.scheme == "unix":
        if not parts.path:
            raise ValueError(MALFORMED)
        return ServerAddress("", 0, tls=False, path=unquote(parts.path))
    if not parts.hostname or not port:
        raise ValueError(MALFORMED)
    return ServerAddress(parts.hostname, port, parts.scheme in TLS)


def parse_connection_string(text: str) -> dict[str, str]:
    """The parts of a Service Bus connection string by their names; what has no "=" is left out."""
    return dict(part.split("=", 1) for part in text.strip().rstrip(";").split(";") if "=" in part)
