"""Django's PostgreSQL behind a pooler that lends a session for one transaction (PgBouncer in transaction mode).

What a connection of its own is told once, when it is opened, would there be refused, or stay with whoever gets the
session next. It is said at the head of each transaction instead, in the message that begins it: no round trip more.
"""

from typing import Any

from django.db.backends.postgresql import base
from psycopg.sql import SQL, Literal

from turno.pooler import LIMITS


class DatabaseWrapper(base.DatabaseWrapper):
    """`OPTIONS[LIMITS]`: the milliseconds of a statement, and of a pause, that each transaction has. Outside of one the
    server's own hold."""

    def get_connection_params(self) -> dict[str, Any]:
        """What the driver is told: all but the limits."""
        params = super().get_connection_params()
        params.pop(LIMITS, None)
        return params

    def _start_transaction_under_autocommit(self) -> None:
        """Django's hook for drivers that stay in autocommit: `atomic` calls it, and ends what it began.

        Raises OperationalError when the connection is gone.
        """
        statement, pause = self.settings_dict["OPTIONS"][LIMITS]
        # Without parameters it is one message of the simple protocol, whatever it consists of.
        begin = SQL(
            "BEGIN; SET LOCAL jit = off; SET LOCAL statement_timeout = {};"
            " SET LOCAL idle_in_transaction_session_timeout = {}"
        ).format(Literal(statement), Literal(pause))
        with self.wrap_database_errors:
            try:
                self.connection.execute(begin)
            except self.Database.Error:
                self.connection.close()  # never a transaction that was begun without its limits
                raise
