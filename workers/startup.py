"""Before a worker works: the database answers and its tables are there, or we wait and say so."""

import logging
import time
from collections.abc import Callable

from django.db import Error, connections
from django.db.migrations.executor import MigrationExecutor

from jobs.text import first_line
from workers.connections import ENGINE, Backoff, drop_connection

log = logging.getLogger(__name__)


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
        time.sleep(backoff.delay())
    return False


def _problem() -> str | None:
    try:
        executor = MigrationExecutor(connections[ENGINE])
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes("jobs"))
    except Error as error:
        return f"the database does not answer: {first_line(error)}"
    finally:
        drop_connection()
    return f"migrations are missing ({len(missing)}): run manage.py migrate" if missing else None
