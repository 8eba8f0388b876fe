"""The API as a client sees it, in this process, on real PostgreSQL."""

import pytest
from django.core.cache import cache

from jobs import health
from tests.api.client import Api
from tests.jobs.enqueue_types import registered


@pytest.fixture(autouse=True)
def _fresh():
    """No failed key and no probe of another test is remembered; the test types are known."""
    cache.clear()
    health.forget()
    with registered():
        yield
    cache.clear()


@pytest.fixture
def api(db):
    """A client with the right key."""
    return Api()


@pytest.fixture
def stranger(db):
    """A client without a key."""
    return Api(key=None)
