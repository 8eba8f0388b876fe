"""Posts of workers on the RabbitMQ of the test session, with classic queues."""

import pytest

from tests.contract.conftest import committed, loop, posts
from tests.contract.harnesses import QuorumHarness, RabbitHarness
from tests.kit.english import english

__all__ = ["committed", "english", "loop", "posts"]


@pytest.fixture
def house(committed, loop, rabbitmq):
    """Makes harnesses: `house(heartbeat=1)`; what they leave behind goes with the test."""
    made = []

    def make(kind=RabbitHarness, server=None, **settings):
        made.append(kind(loop, server or rabbitmq, **settings))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


@pytest.fixture
def rabbit(house):
    """A harness with the usual settings."""
    return house()


@pytest.fixture
def quorum(house):
    """One whose queues are quorum queues."""
    return house(QuorumHarness)
