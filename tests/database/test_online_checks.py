"""Checks that a later migration replaces: never missing on a table that is written; again when it was broken off."""

import psycopg
import pytest
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader

from tests.database.scratch import finished

PLAIN = (migrations.RemoveConstraint, migrations.AddConstraint, migrations.AlterConstraint)
NAMES = """
SELECT conname, convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname LIKE '%_format' ORDER BY 1
"""


@pytest.mark.crash
def test_what_gave_up_behind_a_busy_table_replaces_its_checks_in_the_next_run(scratch):
    assert finished(scratch, "migrate", "jobs", "0017").returncode == 0
    with psycopg.connect(scratch, autocommit=True) as watcher:
        counting = {name for name, _valid, said in watcher.execute(NAMES) if "{1," in said}
        assert {"jobs_queue_format", "jobs_type_format", "circuits_type_format"} <= counting
        with psycopg.connect(scratch) as busy:
            busy.execute("LOCK TABLE turno.jobs IN ROW EXCLUSIVE MODE")
            assert finished(scratch, "migrate", "--lock-timeout", "300ms").returncode == 1
            half = watcher.execute(NAMES).fetchall()
            assert counting == {name for name, *_ in half} - {"artifacts_sha256_format"}  # none is missing
            assert 0 < sum("{1," in said for *_, said in half) < len(counting)  # circuits before jobs
        repeated = finished(scratch, "migrate")
        assert repeated.returncode == 0, repeated.stderr
        assert not [said for _name, valid, said in watcher.execute(NAMES) if "{1," in said or not valid]


@pytest.mark.django_db
def test_no_migration_takes_a_check_away_or_looks_through_a_table_of_an_earlier_one_for_it():
    found = MigrationLoader(connection).disk_migrations
    for (app, name), migration in found.items():
        if app == "jobs" and name >= "0013":  # the ones before came with the first release
            plain = [o for o in migration.operations if isinstance(o, PLAIN)]
            assert not plain, f"{name}: {plain[0].describe()}"
