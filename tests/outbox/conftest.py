"""Committed rows, a configuration with a broker, and a broker in memory on a loop of its own."""

import pytest

from tests.kit.broker import MemoryBroker, loop_beside
from tests.outbox.rows import with_broker
from tests.transitions.conftest import _ear, committed, ear, using  # noqa: F401


@pytest.fixture
def configured():
    """A broker is configured."""
    with with_broker():
        yield


@pytest.fixture
def broker():
    """A broker in memory, empty and there."""
    return MemoryBroker()


@pytest.fixture
def loop():
    """The loop on which the broker is asked."""
    with loop_beside() as running:
        yield running
