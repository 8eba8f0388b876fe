"""Committed rows, and a proxy between the engine's connections and the server."""

import pytest

from tests.kit.processes import database_url
from tests.kit.proxy import Proxy, through
from tests.transitions.rows import empty_tables


@pytest.fixture
def committed(transactional_db):
    """Rows are committed and visible to every connection; deleted afterwards."""
    yield
    empty_tables()


@pytest.fixture
def proxy(transactional_db):
    """A proxy to the test database; nothing goes through it by itself."""
    with Proxy(database_url()) as made:
        yield made


@pytest.fixture
def engine(committed, proxy):
    """The proxy, with every connection of the alias `engine` of this process going through it."""
    with through(proxy, "engine"):
        yield proxy
