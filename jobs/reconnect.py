"""Connections that the server has closed meanwhile are replaced before somebody uses them.

A pool's own check costs a round trip a request, and after a restart of the server, when all its connections are dead,
its backoff takes longer than anybody waits; and what Django checks it checks between requests, which a long-lived
script has none of. Here somebody looks, without a round trip, whether the server has said anything on its idle
connection; only then is it tried, and the whole pool with it.
"""

import select
from typing import Any

from django.db import connections

TRIES = 3


def _spoken_to(socket: int) -> bool:
    """Something waits to be read: on an idle connection most likely its end."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def _answers(raw: Any) -> bool:
    """Whether the driver's connection can be used; one to which nobody spoke is believed."""
    if raw.closed:
        return False
    if not _spoken_to(raw.fileno()):
        return True
    try:
        raw.execute("")
    except raw.Error:
        return False
    return True


def replace_broken(using: str = "default") -> None:
    """Call before the first statement of a request, or of a transaction; within a transaction it does nothing.

    Raises OperationalError when a pool has no connection that can be used.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return
    if connection.pool is None:
        # Whoever has switched autocommit off is in a transaction too, and must hear of its end.
        if connection.connection is not None and connection.autocommit and not _answers(connection.connection):
            connection.close()
        return
    for _ in range(TRIES):
        connection.ensure_connection()
        if _answers(connection.connection):
            return
        connection.close()
        connection.pool.check()
