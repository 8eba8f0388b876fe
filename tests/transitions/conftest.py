"""Committed rows on real connections, cheaply: what a test leaves is deleted, not truncated."""

import pytest

from tests.transitions.breakers import TYPE
from tests.transitions.ear import Ear
from tests.transitions.rows import empty_tables, execute, make_worker

ALIASES = ("default", "engine")


@pytest.fixture
def committed(transactional_db):
    """Rows are committed and visible to every connection; deleted afterwards."""
    yield
    empty_tables()


@pytest.fixture
def served(committed):
    """A worker of the queue `default` has the type of the breakers and another one; breakers go with the test."""
    make_worker(queues={"default": 4}, types=[TYPE, "other"])
    yield
    for table in ("workers", "circuits"):
        execute(f"DELETE FROM turno.{table}")


@pytest.fixture(params=ALIASES)
def using(request):
    """Both ways of binding: the web's connection (client side) and the engine's (server side, prepared)."""
    return request.param


@pytest.fixture(scope="package")
def _ear(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), Ear() as ear:
        yield ear


@pytest.fixture
def ear(_ear, committed):
    """What is announced from here on."""
    _ear.heard()
    return _ear
