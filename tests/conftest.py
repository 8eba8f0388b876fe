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


# Run by two test processes at once, the whole is as long as its longest part: what starts worker processes stays in one
# of them, one test at a time; what opens a browser in the other; all else goes where there is room.
PROCESSES = ("crash", "launcher", "launcher_slow")
BROWSER = Path(__file__).parent / "browser"


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """The long parts first, each kept together (pytest-xdist, `--dist loadgroup`)."""
    order = {"processes": 0, "browser": 1, None: 2}

    def part(item):
        if item.path.is_relative_to(BROWSER):
            return "browser"
        return "processes" if any(item.get_closest_marker(marker) for marker in PROCESSES) else None

    for item in items:  # before pytest-xdist looks
        if name := part(item):
            item.add_marker(pytest.mark.xdist_group(name))
    result = yield
    items.sort(key=lambda item: order[part(item)])  # after pytest-django sorted
    return result


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
