"""Django's DATABASES from the typed settings.

Three aliases on one database: `default` (web, ORM, handlers), `engine` (the worker's own connections: server-side
binding and prepared statements, so that no hot statement is planned each time) and `direct` (LISTEN, migrations;
never through PgBouncer). Tables are named with their schema, so that no search_path is needed: PgBouncer refuses it.
"""

from typing import Any

from jobs.databaseurl import parse_database_url
from jobs.sections import Database


def _parts(url: str) -> dict[str, Any]:
    """Django's keys from a URL; what it names besides (`?sslmode=require`) goes to the driver."""
    parameters = parse_database_url(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname"),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "OPTIONS": parameters,
    }


def _alias(url: str, section: Database, *, timeouts: bool, **options: Any) -> dict[str, Any]:
    """One alias; what the URL itself names wins.

    Keepalives and tcp_user_timeout (ms): a cut-off peer must not hold a row lock for long.
    """
    alias = _parts(url)
    alias["CONN_MAX_AGE"] = None
    alias["CONN_HEALTH_CHECKS"] = True
    alias["OPTIONS"] = {
        "connect_timeout": max(2, round(section.connect_timeout)),
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
        **options,
        **alias["OPTIONS"],
    }
    if timeouts:
        statement, idle = section.statement_timeout * 1000, section.idle_in_transaction_timeout * 1000
        # Every statement here is short: compiling one costs more than it saves, and did so with deep queues.
        ours = f"-c jit=off -c statement_timeout={statement:.0f} -c idle_in_transaction_session_timeout={idle:.0f}"
        alias["OPTIONS"]["options"] = f"{ours} {alias['OPTIONS'].get('options', '')}".strip()
    return alias


def databases(section: Database, *, pooled: bool) -> dict[str, dict[str, Any]]:
    """The DATABASES setting; `pooled` gives `default` a connection pool (the web process answers on many threads)."""
    bouncer = section.direct_url is not None
    default = _alias(section.url, section, timeouts=not bouncer)
    engine = _alias(
        section.url,
        section,
        timeouts=not bouncer,
        server_side_binding=True,
        prepare_threshold=None if bouncer else 2,
    )
    direct = _alias(section.direct_url or section.url, section, timeouts=False)
    for alias in (default, engine):
        alias["DISABLE_SERVER_SIDE_CURSORS"] = bouncer
    if pooled:
        default["CONN_MAX_AGE"] = 0
        default["CONN_HEALTH_CHECKS"] = False  # `jobs.reconnect` looks, without a round trip
        default["OPTIONS"]["pool"] = {
            "min_size": 1,
            "max_size": section.pool_size,
            "timeout": section.connect_timeout,
            "max_idle": 300,
        }
    return {"default": default, "engine": engine, "direct": direct}
