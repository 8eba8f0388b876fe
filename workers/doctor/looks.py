"""The looks of the doctor: settings, database, tables, clock, servers, workers, and what waits for a person."""

import time
from collections.abc import Callable, Iterator

import psycopg
from django.db import Error, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs import health, queries, reachable
from jobs.conf import conf
from jobs.text import first_line
from workers.doctor.base import Level, Line, listed
from workers.doctor.concerns import told

Look = Callable[[], Iterator[Line]]
OLDEST = 15  # of PostgreSQL's versions
ASKING = 5  # seconds for a connection
SKEW = 2.0  # seconds by which two clocks may differ and nobody minds
SCHEDULES = "SELECT name FROM turno.recurring_jobs WHERE enabled AND error IS NOT NULL ORDER BY name LIMIT 21"


def settings() -> Iterator[Line]:
    """The configuration was read before Django was: who comes here has a valid one."""
    found = conf()
    parts = ["PostgreSQL"]
    if found.messaging.broker:
        parts.append({"rabbitmq": "RabbitMQ", "servicebus": "Azure Service Bus"}[found.messaging.transport])
    if found.redis.urls:
        parts.append("Redis")
    says = _("The configuration is valid. Turno works with %(parts)s.") % {"parts": listed(parts)}
    yield Line(Level.OK, "configuration", says, facts={"profile": "cluster" if found.messaging.broker else "embedded"})


def database() -> Iterator[Line]:
    """Whether the database answers on a connection of its own, in bounded time, and is new enough."""
    params = connection.get_connection_params()
    params.pop("pool", None)
    params |= {"connect_timeout": ASKING, "tcp_user_timeout": ASKING * 1000}
    try:
        with psycopg.connect(**params, autocommit=True) as asked:
            asked.execute("SELECT 1")
            version = asked.info.server_version // 10_000
            exact = asked.info.parameter_status("server_version") or str(version)
    except (psycopg.Error, OSError, ValueError) as error:
        says = _("The database does not answer: %(error)s.") % {"error": first_line(error).rstrip(".")}
        advice = _("Start PostgreSQL, or correct database.url (TURNO_DATABASE__URL). Nothing else was looked at.")
        yield Line(Level.BROKEN, "database", says, advice)
        return
    if version < OLDEST:
        says = _("The database is PostgreSQL %(version)s; Turno needs %(oldest)d or newer.")
        yield Line(Level.BROKEN, "database", says % {"version": exact, "oldest": OLDEST}, _("Upgrade the server."))
        return
    says = _("The database answers: PostgreSQL %(version)s.") % {"version": exact}
    yield Line(Level.OK, "database", says, facts={"version": exact})


def migrations() -> Iterator[Line]:
    """Whether the tables are those of this version."""
    try:
        executor = MigrationExecutor(connection)
        missing = [str(name) for name, _back in executor.migration_plan(executor.loader.graph.leaf_nodes())]
        known = set(executor.loader.disk_migrations)
        newer = sorted(
            name for app, name in executor.loader.applied_migrations if app == "jobs" and (app, name) not in known
        )
    except Error as error:
        says = _("The database refuses to say which migrations it has: %(error)s.") % {"error": first_line(error)}
        yield Line(Level.BROKEN, "migrations", says, _("Look at the rights of the database's user."))
        return
    if missing:
        says = ngettext("%(n)d migration is missing.", "%(n)d migrations are missing.", len(missing))
        advice = _("Run manage.py migrate. Nothing else was looked at.")
        yield Line(Level.BROKEN, "migrations", says % {"n": len(missing)}, advice, {"missing": missing})
    elif newer:
        says = _("The tables are those of a newer version of Turno: %(names)s.") % {"names": listed(newer)}
        advice = _("Install that version here too, unless a rolling upgrade is under way.")
        yield Line(Level.ATTENTION, "migrations", says, advice, {"newer": newer})
    else:
        yield Line(Level.OK, "migrations", _("Every migration is applied."))


def clock() -> Iterator[Line]:
    """How far this machine's clock is from the database's, by which Turno goes."""
    with connection.cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        theirs = cursor.fetchone()[0]
        skew = theirs - (before + time.time()) / 2
    values = {"seconds": formats.number_format(abs(skew), 1)}
    facts = {"skew": round(skew, 3)}
    if abs(skew) <= SKEW:
        says = _("This machine's clock and the database's differ by %(seconds)s s.") % values
        yield Line(Level.OK, "clock", says, facts=facts)
        return
    ahead = _("The database's clock is %(seconds)s s ahead of this machine's.")
    behind = _("The database's clock is %(seconds)s s behind this machine's.")
    advice = _("Turno goes by the database's clock alone; set both by NTP, so that logs can be compared.")
    yield Line(Level.ATTENTION, "clock", (ahead if skew > 0 else behind) % values, advice, facts)


def servers() -> Iterator[Line]:
    """The servers beside the database that the configuration names."""
    reachable.watch(conf())
    for report in health.check_all():
        if report.name == "postgresql":
            continue
        values = {"name": report.name, "said": report.said, "where": listed(report.where)}
        if report.ok:
            yield Line(Level.OK, report.name, _("%(name)s answers.") % values)
        else:
            says = _("%(name)s %(said)s (%(where)s).") if report.where else _("%(name)s %(said)s.")
            advice = _("Jobs are accepted meanwhile, and go on when it is back.")
            yield Line(Level.ATTENTION, report.name, says % values, advice)


def workers() -> Iterator[Line]:
    """Whether somebody is there to run anything."""
    live = [worker for worker in queries.workers() if worker.state in ("Online", "Draining")]
    if not live:
        says, advice = _("No worker is alive: nothing runs."), _("Start one with manage.py runworker.")
        yield Line(Level.ATTENTION, "workers", says, advice, {"live": 0})
        return
    says = ngettext("%(n)d worker is alive.", "%(n)d workers are alive.", len(live)) % {"n": len(live)}
    yield Line(Level.OK, "workers", says, facts={"live": len(live)})


def concerns() -> Iterator[Line]:
    """What the Painel shows as needing a person, and what its other screens count."""
    board = queries.board({})
    found = queries.attention(board, queries.depths(board), health.latest())
    for concern in found:
        yield told(concern)
    letters = queries.stats().dead_letters
    if letters:
        says = ngettext("%(n)d dead letter waits for a person.", "%(n)d dead letters wait for a person.", letters)
        advice = _("Requeue or discard them on the screen Dead letters.")
        yield Line(Level.ATTENTION, "dead_letters", says % {"n": letters}, advice, {"pending": letters})
    with connection.cursor() as cursor:
        cursor.execute(SCHEDULES)
        failing = [name for (name,) in cursor.fetchall()]
    if failing:
        says = ngettext(
            "%(n)d recurring job can't fire: %(names)s.", "%(n)d recurring jobs can't fire: %(names)s.", len(failing)
        )
        advice = _("Open it on the screen Recurring: what is wrong stands there.")
        facts = {"names": failing}
        yield Line(Level.ATTENTION, "schedules", says % {"n": len(failing), "names": listed(failing)}, advice, facts)
    if not (found or letters or failing):
        yield Line(Level.OK, "attention", _("Nothing waits for a person."))


def _safe(look: Look) -> Look:
    """The look; an error in it is a line, and no traceback."""

    def looked() -> Iterator[Line]:
        try:
            yield from look()
        except Error as error:
            connections.close_all()
            says = _("The database broke off: %(error)s.") % {"error": first_line(error)}
            yield Line(Level.BROKEN, look.__name__, says, _("Look at the database, and check again."))
        except Exception as error:  # noqa: BLE001  (whoever looks for a fault must not meet another)
            says = _("This could not be looked at: %(error)s.") % {"error": f"{type(error).__name__}: {error}"}
            yield Line(Level.ATTENTION, look.__name__, says, _("Report it: this is a fault of Turno's."))

    return looked


FIRST: tuple[Look, ...] = (settings, database, migrations)
BESIDE: tuple[Look, ...] = tuple(_safe(look) for look in (clock, servers, workers, concerns))
