"""Django's DATABASES from the typed settings.

Three aliases on one database: `default` (web, ORM, handlers; of it only what enqueues is prepared), `engine` (the
worker's own connections: server-side binding and prepared statements, so that no hot statement is planned each time)
and `direct` (LISTEN, migrations; never through PgBouncer). Tables are named with their schema, so that no search_path
is needed: PgBouncer refuses it. Behind a PgBouncer nothing is asked of a session: no prepared statements, and limits
at the head of each transaction.
"""

from typing import Any

from jobs.databaseurl import parse_database_url
from jobs.sections import Database
from turno.pooler import LIMITS

DIRECTLY, THROUGH_A_POOLER = "django.db.backends.postgresql", "turno.pooler"


def _parts(url: str) -> dict[str, Any]:
    """Django's keys from a URL; what it names besides (`?sslmode=require`) goes to the driver."""
    parameters = parse_database_url(url)
    return {
        "ENGINE": DIRECTLY,
        "NAME": parameters.pop("dbname"),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "OPTIONS": parameters,
    }


def _alias(url: str, section: Database, **options: Any) -> dict[str, Any]:
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
    return alias


def _limited(alias: dict[str, Any], section: Database, *, pooler: bool) -> dict[str, Any]:
    """The alias, with what bounds each of its statements and transactions."""
    statement, pause = round(section.statement_timeout * 1000), round(section.idle_in_transaction_timeout * 1000)
    options = alias["OPTIONS"]
    if pooler:
        alias["ENGINE"] = THROUGH_A_POOLER
        alias["DISABLE_SERVER_SIDE_CURSORS"] = True
        options[LIMITS] = (statement, pause)
    else:
        # Every statement here is short: compiling one costs more than it saves, and did so with deep queues.
        ours = f"-c jit=off -c statement_timeout={statement} -c idle_in_transaction_session_timeout={pause}"
        options["options"] = f"{ours} {options.get('options', '')}".strip()
    return alias


def databases(section: Database, *, pooled: bool) -> dict[str, dict[str, Any]]:
    """The DATABASES setting; `pooled` gives `default` a connection pool (the web process answers on many threads).

    A `direct_url` says that a PgBouncer stands before `url`, as `pooler` does where there is no direct way.
    """
    pooler = section.behind_a_pooler
    default = _limited(_alias(section.url, section), section, pooler=pooler)
    engine = _alias(section.url, section, server_side_binding=True, prepare_threshold=None if pooler else 2)
    engine = _limited(engine, section, pooler=pooler)
    direct = _alias(section.direct_url or section.url, section)
    if not section.can_listen:
        direct = _limited(direct, section, pooler=True)
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
