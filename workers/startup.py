"""Before a worker works: who it is; the database answers and its tables are there, or we wait and say so."""

import logging
import os
import pkgutil
import time
from collections.abc import Callable, Mapping
from uuid import UUID

from django.db import Error, connections

from jobs import migrations, pooler
from jobs.presence import Presence
from jobs.registry import catalogue
from jobs.text import first_line
from workers import identity
from workers.connections import ENGINE, Backoff, drop_connection

log = logging.getLogger(__name__)
LOOK = 0.2  # seconds between two looks whether to go on waiting
UNNAMED_POOLER = (
    "a PgBouncer stands before the database and the configuration does not say so:"
    " name a connection past it in database.direct_url, or set database.pooler where there is none"
)


def introduction(name: str | None, queues: Mapping[str, int], worker_id: UUID) -> Presence:
    """This process as the worker of that id, with the handlers that are loaded; None: named by host and pid."""
    pid = os.getpid()
    return Presence(
        id=worker_id,
        name=name or f"{identity.host()}-{pid}",
        host=identity.host(),
        boot_id=identity.boot_id(),
        pid_namespace=identity.pid_namespace(),
        pid=pid,
        pid_started=identity.start_time(pid),
        version=identity.turno_version(),
        queues=dict(queues),
        types=catalogue.names(),
    )


def wait_for_database(reconnect_max: float, stop: Callable[[], bool] = lambda: False) -> bool:
    """Wait, with backoff, until the database answers and no migration is missing; False when `stop` says so first."""
    backoff = Backoff(reconnect_max)
    said = ""
    while not stop():
        problem = _problem()
        if problem is None:
            return True
        if problem != said:
            log.warning("worker.waiting", extra={"reason": problem})
            said = problem
        until = time.monotonic() + backoff.delay()
        while not stop() and (left := until - time.monotonic()) > 0:
            time.sleep(min(LOOK, left))  # a signal does not end it
    return False


def _problem() -> str | None:
    try:
        if not pooler.is_named() and pooler.stands_before(connections[ENGINE]):
            return UNNAMED_POOLER
        missing = missing_migrations()
    except Error as error:
        if pooler.refused_by_one(error):
            return UNNAMED_POOLER
        return f"the database does not answer: {first_line(error)}"
    finally:
        drop_connection()
    return f"migrations are missing ({len(missing)}): run manage.py migrate" if missing else None


def missing_migrations() -> list[str]:
    """Those of our tables that were not applied, by name. Raises database errors.

    Names are all that is asked for: Django's own answer loads every app's migrations, which stay in memory.
    """
    ours = [module.name for module in pkgutil.iter_modules(migrations.__path__) if not module.name.startswith("_")]
    with connections[ENGINE].cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations')")
        applied = set[str]()
        if cursor.fetchone()[0] is not None:
            cursor.execute("SELECT name FROM django_migrations WHERE app = 'jobs'")
            applied = {name for (name,) in cursor.fetchall()}
    return sorted(set(ours) - applied)
