"""Indexes that a later migration adds: built beside running work, and again when building one was broken off."""

import psycopg
import pytest
from django.contrib.postgres import operations
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader

from jobs.migrations._online import AddIndexConcurrently
from tests.database.scratch import finished

INVALID = """
SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE NOT i.indisvalid
"""


@pytest.mark.crash
def test_what_gave_up_behind_a_busy_table_is_built_by_the_next_run(scratch):
    assert finished(scratch, "migrate", "jobs", "0004").returncode == 0
    with psycopg.connect(scratch) as busy:
        busy.execute("LOCK TABLE turno.jobs IN ROW EXCLUSIVE MODE")
        refused = finished(scratch, "migrate", "--lock-timeout", "300ms")
        assert refused.returncode == 1
        assert "stayed locked by somebody else" in refused.stderr
    with psycopg.connect(scratch) as watcher:
        assert watcher.execute(INVALID).fetchall() == [("jobs_suspect",)]
        repeated = finished(scratch, "migrate")
        assert repeated.returncode == 0, repeated.stderr
        assert watcher.execute(INVALID).fetchall() == []


@pytest.mark.django_db
def test_no_migration_locks_a_table_of_an_earlier_one_to_index_it():
    found = MigrationLoader(connection).disk_migrations
    for (app, name), migration in found.items():
        made = {operation.name for operation in migration.operations if isinstance(operation, migrations.CreateModel)}
        made = {model.lower() for model in made}
        for operation in migration.operations if app == "jobs" else ():
            if isinstance(operation, migrations.AddIndex) and operation.model_name_lower not in made:
                assert isinstance(operation, AddIndexConcurrently), f"{name}: {operation.describe()}"
            assert type(operation) is not operations.AddIndexConcurrently, f"{name}: can't be run again"
