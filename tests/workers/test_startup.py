"""A worker that waits for its database."""

import os
import subprocess
import sys
import threading

import pytest
from django.db import connections, transaction
from django.db.migrations.executor import MigrationExecutor

from tests.kit.processes import PROJECT
from workers import startup
from workers.connections import ENGINE

NEEDLESS = ("ninja", "django.test", "unittest", "daphne", "twisted", "pika", "redis", "boto3", "jobs.api", "jobs.admin")
LOADED = """
import sys
sys.argv[1:] = ["runworker"]
from turno.environment import prepare
prepare()
import django
django.setup()
import workers.management.commands.runworker
print(*sys.modules)
"""


def test_a_request_to_stop_ends_the_wait_for_the_database_however_long_its_pause_is(monkeypatch):
    asked, pausing, answers = threading.Event(), threading.Event(), []
    monkeypatch.setattr(startup, "_problem", lambda: "it is away")
    monkeypatch.setattr(startup.Backoff, "delay", lambda backoff: pausing.set() or 600.0)
    waiting = threading.Thread(
        target=lambda: answers.append(startup.wait_for_database(600.0, stop=asked.is_set)), daemon=True
    )
    waiting.start()
    assert pausing.wait(60)
    asked.set()
    waiting.join(60)
    assert answers == [False]


@pytest.mark.django_db(databases=[ENGINE], transaction=True)
def test_the_migrations_that_are_missing_are_those_that_django_would_apply():
    connection = connections[ENGINE]
    assert startup.missing_migrations() == []
    with transaction.atomic(using=ENGINE), connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'jobs' AND name >= '0017'")
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes("jobs"))
        assert startup.missing_migrations() == [migration.name for migration, _back in plan] != []
        transaction.set_rollback(True, using=ENGINE)


@pytest.mark.django_db(databases=[ENGINE], transaction=True)
def test_in_a_database_that_was_never_migrated_all_are_missing():
    with transaction.atomic(using=ENGINE), connections[ENGINE].cursor() as cursor:
        cursor.execute("ALTER TABLE django_migrations RENAME TO others")
        missing = startup.missing_migrations()
        transaction.set_rollback(True, using=ENGINE)
    assert missing[0] == "0001_schema"
    assert not [name for name in missing if name.startswith("_")]


def test_a_worker_has_nothing_in_memory_that_only_the_web_process_needs():
    named = {"TURNO_DATABASE__URL": "postgresql://nobody@127.0.0.1:9/turno", "DJANGO_SETTINGS_MODULE": "turno.settings"}
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TURNO_")} | named
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=PROJECT, env=ours, capture_output=True, text=True, check=True
    )
    assert [name for name in NEEDLESS if name in done.stdout.split()] == []
