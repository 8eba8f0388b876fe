"""That the broker has a message alone is written a moment later; what comes in that moment goes out before."""

import pytest
from django.db import OperationalError

from jobs import transitions
from jobs.conf import conf
from tests.kit.processes import eventually
from tests.outbox.rows import outbox, waiting, with_broker
from tests.outbox.test_relay import beside
from tests.transitions import COMMITTED
from workers.relay import FEW, ROUND, Relay

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


@pytest.fixture
def relay(broker, loop, monkeypatch):
    """A relay whose moment lasts until it hears something."""
    monkeypatch.setattr("workers.relay.LATER", 3600.0)
    with with_broker():
        yield Relay(broker, loop, conf().messaging)


def sees(broker, count):
    eventually(lambda: len(broker.tokens) == count, f"{count} messages are published")


def alone(relay, broker):
    """The relay has published a message and waits for more; its run's answer."""
    waiting(1)
    running = beside(relay.run_once)
    sees(broker, 1)
    return running


def test_what_comes_in_that_moment_is_published_at_once_and_then_all_is_written(relay, broker):
    running = alone(relay, broker)
    assert [row["lock_id"] is None for row in outbox()] == [False]
    waiting(1)
    relay.hear()
    sees(broker, 2)
    assert relay.close(60)
    assert running() == 2
    assert outbox() == []


def test_a_wake_that_was_followed_in_that_moment_is_not_followed_twice(relay, broker, monkeypatch):
    running = alone(relay, broker)
    monkeypatch.setattr("workers.relay.LATER", 0.0)
    relay.hear()
    assert running() == 1
    waiting(1)  # of which nobody has said anything
    assert (relay.run_once(), relay.run_once()) == (0, 1)


def test_a_wake_that_came_after_the_last_look_is_followed(relay, broker, monkeypatch):
    running = alone(relay, broker)
    monkeypatch.setattr("workers.relay.LATER", 0.0)
    relay.hear()
    assert running() == 1
    waiting(1)
    relay.hear()
    assert relay.run_once() == 1


def test_after_an_error_the_next_look_is_not_spared(relay, broker, monkeypatch):
    running = alone(relay, broker)

    def dies(*_arguments, **_options):
        raise OperationalError("the connection is gone")

    with monkeypatch.context() as patch:
        patch.setattr(transitions, "lease_outbox", dies)
        relay.hear()
        with pytest.raises(OperationalError):
            running()
    assert outbox() == []  # what was on its way is written all the same
    waiting(1)
    monkeypatch.setattr("workers.relay.LATER", 0.0)
    assert relay.run_once() == 1


def test_more_than_a_round_takes_is_looked_for_again_at_once(broker, loop, relay):
    with with_broker(outbox_batch_size=5):
        small = Relay(broker, loop, conf().messaging)
        running = alone(small, broker)
        waiting(90)
        small.hear()  # one wake for all of them
        assert running() == 1 + 5 * (ROUND - 1)
        assert small.run_once() == 20
        assert outbox() == []


def test_a_wake_that_was_followed_spares_no_look_once_the_broker_is_back(relay, broker, monkeypatch):
    running = alone(relay, broker)
    monkeypatch.setattr("workers.relay.LATER", 0.0)
    relay.hear()
    assert running() == 1
    broker.there = False
    assert relay.run_once() == 0
    waiting(1)
    broker.there = True
    assert relay.run_once() == 1


def test_a_wake_in_vain_ends_the_moment(relay, broker):
    running = alone(relay, broker)
    relay.hear()
    assert running() == 1
    assert outbox() == []


def test_several_wait_for_nothing(relay, broker):
    waiting(FEW + 1)
    assert relay.run_once() == FEW + 1
    assert outbox() == []
