"""A private Service Bus, and workers around the transport that end with the test."""

import pytest

from tests.kit.english import english  # noqa: F401  (around each test)
from tests.kit.servicebus import running_service_bus
from tests.servicebus.desk import Desk, Worker

QUEUES = ("turno-default", "turno-critical", "turno-dead-letter")


@pytest.fixture
def bus(tmp_path):
    """With the queues that an administrator would have made for `default` and `critical`, but for those of errors."""
    with running_service_bus(tmp_path, QUEUES) as found:
        yield found


@pytest.fixture
def desk():
    """Who decides about jobs."""
    return Desk()


@pytest.fixture
async def hire(bus, desk):
    """Start a worker: `hire(default=2)`; the settings of `messaging` as `settings`."""
    hired = []

    def start(settings=None, **queues):
        hired.append(Worker(bus, desk, queues, **(settings or {})))
        return hired[-1]

    yield start
    for worker in hired:
        await worker.close()
