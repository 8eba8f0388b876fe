"""What every test may use."""

from pathlib import Path

import pytest
from django.db import connections
from hypothesis import settings

from jobs import events
from tests.kit.processes import fleet_of
from tests.kit.redis_server import running_redis

# How long one example takes says how busy the machine is.
settings.register_profile("turno", deadline=None)
settings.load_profile("turno")
# The process that runs the tests tells no screens: its thread would hold a connection to a database that is dropped.
events.silence()
OUR_TABLES = "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables WHERE schemaname = 'turno'"


# Two test processes share the whole run (`./testar.sh`), each taking the next test when it is free: what takes long
# comes first, so that they end together.
LONG = ("crash", "launcher", "launcher_slow")
TESTS = Path(__file__).parent
BROWSER = TESTS / "browser"
# Marked `slow` as a whole, besides what says so itself: many small tests that take seconds together. What stays is what
# `./testar.sh unit` runs in under a minute.
SLOW = (
    "admin", "api", "doubt", "laws", "live", "queries", "races",
    "dashboard/test_e", "dashboard/test_hostile", "dashboard/test_lotes", "dashboard/test_painel",
    "dashboard/test_tarefa", "dashboard/test_workers_page", "database/test_indexes",
    "isolation/test_reentry", "jobs/test_bulk", "jobs/test_events", "jobs/test_search_plans",
    "launcher/test_cleanup", "workers/test_demo",
)  # fmt: skip


def pytest_itemcollected(item):
    """The mark of those that are slow together."""
    if item.path.relative_to(TESTS).as_posix().startswith(SLOW):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What starts processes first, then what opens a browser."""

    def place(item):
        if item.path.is_relative_to(BROWSER):
            return 1
        return 0 if any(item.get_closest_marker(marker) for marker in LONG) else 2

    items.sort(key=place)


@pytest.fixture
def clean_tables(transactional_db):
    """For tests whose rows are committed (threads, processes): empties our tables afterwards.

    Django's own flush sees only tables on the search_path; ours stand in the schema `turno`.
    """
    yield
    with connections["default"].cursor() as cursor:
        cursor.execute(OUR_TABLES)
        cursor.execute(f"TRUNCATE {cursor.fetchone()[0]} CASCADE")


@pytest.fixture
def fleet(clean_tables, tmp_path):
    """Real workers on the test database; what they started is ended with the test."""
    yield from fleet_of(tmp_path)


@pytest.fixture
def redis_server(tmp_path):
    """A private Redis: `redis_server.url`, `.stop()`, `.start()`; ended with the test."""
    with running_redis(tmp_path) as server:
        yield server
