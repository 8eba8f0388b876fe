"""A pooler before the database (PgBouncer): how to tell that there is one, and what it may not be asked to do.

In transaction mode it lends a session for one transaction: prepared statements, session locks and LISTEN go astray.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.conf import conf

REFUSAL = "unsupported startup parameter"  # a PgBouncer's word for limits that are set on connecting
BACKEND = "SELECT pg_backend_pid()"


def is_named() -> bool:
    """Whether the configuration says that a pooler stands before the database."""
    return conf().database.behind_a_pooler


def keeps_its_session(connection: BaseDatabaseWrapper) -> bool:
    """Whether what is told to a session of this alias holds until its end: no pooler lends it to others in between.

    What says so is Django's own setting for that, which `turno.databases` derives, and which others set for theirs.
    """
    return not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")


def refused_by_one(error: BaseException) -> bool:
    """Whether it was a pooler that took no connection, since nobody had named it."""
    return REFUSAL in str(error)


def _backend(connection: BaseDatabaseWrapper) -> int:
    with connection.cursor() as cursor:
        cursor.execute(BACKEND)
        return int(cursor.fetchone()[0])


def stands_before(connection: BaseDatabaseWrapper) -> bool:
    """Whether the connection passes a pooler: its clients know the server's process by a number that is not its own.

    Raises DatabaseError when the database does not answer.
    """
    connection.ensure_connection()
    raw: Any = connection.connection
    return _backend(connection) != raw.info.backend_pid


def lends_sessions(connection: BaseDatabaseWrapper) -> bool:
    """Whether a session that this connection has used was given to another one while this one lives.

    True proves transaction mode; on a busy pool it may be False there too. Raises DatabaseError.
    """
    mine, other = _backend(connection), connection.copy()
    try:
        other.set_autocommit(False)
        return _backend(other) == mine
    finally:
        other.close()
