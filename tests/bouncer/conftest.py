"""A real PgBouncer in transaction mode before the test database."""

from contextlib import ExitStack, contextmanager

import pytest
from django.db import connections

from jobs.sections import Database
from tests.crash.test_database_away import own_server
from tests.kit.pgbouncer import running_pgbouncer
from tests.kit.processes import database_url
from turno.databases import databases

__all__ = ["own_server"]  # a fixture
ALIASES = ("bounced", "bounced_engine")


@pytest.fixture
def bouncer_of(clean_tables):
    """`bouncer_of(default_pool_size="2")`: one with these options of its own; ended with the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(running_pgbouncer(database_url(), **options))


@pytest.fixture
def bouncer(bouncer_of):
    """One as it comes, with a pool of five."""
    return bouncer_of()


@contextmanager
def reached_by(bouncer, blocker):
    """`bounced` and `bounced_engine`: this process's aliases `default` and `engine`, by way of the bouncer."""
    made = databases(Database(url=bouncer.url, direct_url=database_url()), pooled=False)
    for alias, like in zip(ALIASES, ("default", "engine"), strict=True):
        connections.databases[alias] = connections["default"].settings_dict | made[like]
    try:
        with blocker.unblock():  # Django's test case knows nothing of these
            yield
    finally:
        for alias in ALIASES:
            connections[alias].close()
            del connections.databases[alias], connections[alias]


@pytest.fixture
def through(bouncer, django_db_blocker):
    """The bouncer, with this process's aliases that go through it; see `reached_by`."""
    with reached_by(bouncer, django_db_blocker):
        yield bouncer
