"""Addresses of databases, read by libpq's own parser: percent-encoding, several hosts, `?sslmode=require`, sockets.

A message here never repeats a part of the address: where one is malformed, its password may stand anywhere.
"""

from urllib.parse import urlsplit

from jobs.speech import _

SCHEMES = ("postgresql://", "postgres://")


def parse_database_url(url: str) -> dict[str, str]:
    """The connection parameters that a URL names, decoded: host, port, user, password, dbname and any other.

    Raises ValueError saying what was expected.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    form = _("expected postgresql://user:password@host:port/database")
    escaped = _("{form}, where special characters are written as %xx").format(form=form)
    url = url.strip()
    if not url.startswith(SCHEMES) or not url.isprintable() or " " in url:
        raise ValueError(form)
    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        path = urlsplit(url).path
    except (ProgrammingError, ValueError):
        raise ValueError(escaped) from None
    if "@" in path or "@" in parameters.get("host", ""):  # an unescaped "/" or "@" of the password
        raise ValueError(escaped)
    if not all(_is_port(port) for port in parameters.get("port", "5432").split(",")):
        raise ValueError(_("{form}, with a port between 1 and 65535").format(form=form))
    if not parameters.get("dbname"):
        raise ValueError(_("{form}; the name of the database is missing").format(form=form))
    return parameters


def _is_port(text: str) -> bool:
    return text == "" or (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535)
