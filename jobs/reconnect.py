"""Pooled connections that the server has closed meanwhile are replaced before a request uses one.

The pool's own check costs a round trip a request, and after a restart of the server, when all its connections are
dead, its backoff takes longer than anybody waits. Here a request looks, without a round trip, whether the server has
said anything on its idle connection; only then is it tried, and the whole pool with it.
"""

import select

from django.db import connections

TRIES = 3


def _spoken_to(socket: int) -> bool:
    """Something waits to be read: on an idle connection most likely its end."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def replace_broken(using: str = "default") -> None:
    """Call before the first statement of a request. Without a pool, or within a transaction, it does nothing.

    Raises OperationalError when no connection can be had.
    """
    connection = connections[using]
    if connection.pool is None or connection.in_atomic_block:
        return
    for _ in range(TRIES):
        connection.ensure_connection()
        raw = connection.connection
        if not raw.closed and not _spoken_to(raw.fileno()):
            return
        try:
            raw.execute("")
            return
        except connection.Database.Error:
            connection.close()
            connection.pool.check()
