"""Tables emptied after a test whose rows are committed.

TRUNCATE makes the files of each table and index anew, two hundred of them, and Django's flush makes content types and
permissions anew after that, which no test changes. The rows of a test are few: to delete them is forty times cheaper.
"""

from django.db import connections, transaction
from django.test import TransactionTestCase

OURS, DJANGOS = "turno", "public"  # the schemas
KEPT = ("django_migrations", "django_content_type", "auth_permission")
MANY = 256 * 1024  # bytes of a table from which on it is truncated: one that is only deleted from grows
TABLES = """
    SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname = %s AND tablename <> ALL(%s) ORDER BY 1
"""


def empty(schema: str, using: str = "default") -> None:
    """Remove all rows from the tables of a schema but KEPT; waits for whoever is still writing, as TRUNCATE does."""
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute(TABLES, [schema, list(KEPT)])
        names = [name for (name,) in cursor.fetchall()]
        cursor.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")
        cursor.execute("SELECT name, pg_relation_size(name::regclass) FROM unnest(%s::text[]) AS name", [names])
        sizes = dict(cursor.fetchall())
        if max(sizes.values()) > MANY:
            cursor.execute(f"TRUNCATE {', '.join(names)} CASCADE")
            return
        for name in names:
            if sizes[name]:
                cursor.execute(f"DELETE FROM {name}")


def anew() -> None:
    """Make the files of our tables anew: what a plan costs depends on what earlier tests have left in the old ones."""
    with connections["default"].cursor() as cursor:
        cursor.execute(TABLES, [OURS, list(KEPT)])
        cursor.execute(f"TRUNCATE {', '.join(name for (name,) in cursor.fetchall())} CASCADE")


_flush = TransactionTestCase._fixture_teardown


def _teardown(case: TransactionTestCase) -> None:
    if case.available_apps is not None:  # only these apps' tables, and nothing is made anew
        _flush(case)
        return
    using = next(iter(case._databases_names(include_mirrors=False)))  # all are names of the one database
    empty(DJANGOS, using)


def instead_of_flush() -> None:
    """From here on transactional tests leave Django's tables empty this way."""
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[method-assign]  # pytest-django derives from it
