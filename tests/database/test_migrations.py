"""Each migration forwards and backwards, on a database of its own: what comes back is what was there."""

from itertools import pairwise

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from psycopg.conninfo import conninfo_to_dict

from tests.database.scratch import ADVISORY_LOCKS

pytestmark = pytest.mark.slow

OBJECTS = """
    SELECT 'relation', c.oid::regclass::text, c.relkind::text, '' FROM pg_class c WHERE c.relnamespace = ANY (%(ours)s)
    UNION ALL
    SELECT 'column', a.attrelid::regclass::text, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
        a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = ANY (%(ours)s) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'constraint', n.conrelid::regclass::text, n.conname, pg_get_constraintdef(n.oid)
    FROM pg_constraint n WHERE n.connamespace = ANY (%(ours)s)
    UNION ALL
    SELECT 'index', x.indrelid::regclass::text, x.indexrelid::regclass::text, pg_get_indexdef(x.indexrelid)
    FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE c.relnamespace = ANY (%(ours)s)
    UNION ALL
    SELECT 'type', t.typname, t.typtype::text, '' FROM pg_type t WHERE t.typnamespace = ANY (%(ours)s)
    UNION ALL
    SELECT 'function', p.oid::regprocedure::text, '', '' FROM pg_proc p WHERE p.pronamespace = ANY (%(ours)s)
    UNION ALL
    SELECT 'trigger', t.tgrelid::regclass::text, t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t
    WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'schema', s.nspname, '', '' FROM pg_namespace s WHERE s.oid = ANY (%(ours)s)
    ORDER BY 1, 2, 3, 4
"""
SCHEMAS = "SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"


@pytest.fixture
def database(scratch, django_db_blocker):
    """A connection to a scratch database, under an alias of its own, that commands can be told."""
    wrapper = connection.copy(alias="scratch")
    wrapper.settings_dict = {**connection.settings_dict, "NAME": conninfo_to_dict(scratch)["dbname"]}
    connections["scratch"] = wrapper
    with django_db_blocker.unblock():
        yield wrapper
        wrapper.close()
    del connections["scratch"]


def migrate(*target: str) -> None:
    call_command("migrate", *target, database="scratch", verbosity=0, interactive=False)


def catalogue(database: BaseDatabaseWrapper) -> list[tuple[str, ...]]:
    """Everything that stands in any schema but PostgreSQL's own."""
    with database.cursor() as cursor:
        cursor.execute(SCHEMAS)
        schemas = [oid for (oid,) in cursor.fetchall()]
        cursor.execute(OBJECTS, {"ours": schemas})
        return cursor.fetchall()


def our_migrations(database: BaseDatabaseWrapper) -> list[str]:
    graph = MigrationLoader(database).graph
    (leaf,) = graph.leaf_nodes("jobs")
    return [name for app, name in graph.forwards_plan(leaf) if app == "jobs"]


def test_each_migration_can_be_taken_back_and_applied_again_and_leaves_the_same_catalogue(database):
    for app in ("contenttypes", "auth", "sessions"):
        migrate(app)
    steps = ["zero", *our_migrations(database)]
    reached = {"zero": catalogue(database)}
    for step in steps[1:]:
        migrate("jobs", step)
        reached[step] = catalogue(database)
    for before, after in pairwise(steps):
        assert reached[before] != reached[after], f"{after} changes nothing"

    for step in reversed(steps[:-1]):
        migrate("jobs", step)
        assert catalogue(database) == reached[step], f"back at {step}"
    for step in steps[1:]:
        migrate("jobs", step)
        assert catalogue(database) == reached[step], f"again at {step}"


def test_at_zero_nothing_of_ours_is_left_in_any_schema(database):
    migrate()
    with database.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'turno'")
        tables = {name for (name,) in cursor.fetchall()}
    assert "jobs" in tables

    migrate("jobs", "zero")

    left = catalogue(database)
    assert not [row for row in left if "turno" in " ".join(row)]
    names = {str(part) for row in left for part in row[1:3]}
    assert not names & tables


def test_the_session_is_put_back_as_it_was(database):
    settings = ("search_path", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")

    def session() -> list[str]:
        with database.cursor() as cursor:
            cursor.execute("SELECT setting FROM pg_settings WHERE name = ANY (%s) ORDER BY name", [list(settings)])
            return [value for (value,) in cursor.fetchall()]

    before = session()
    migrate()

    assert session() == before
    with database.cursor() as cursor:
        cursor.execute(ADVISORY_LOCKS)
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db
def test_the_models_and_the_migrations_say_the_same():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
