"""What plays Service Bus keeps the service's own rules of locks, deliveries and dead letters."""

import pytest

from tests.kit.clocks import Clock
from tests.kit.servicebus_queues import EXPIRED, TOO_MANY, Namespace


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    """Locks of 30 s, three deliveries at most."""
    namespace = Namespace(30.0, 3)
    namespace.create("Work")
    found = namespace.find("work")
    found.now = found.dead.now = clock
    return found


def payloads(queue):
    return [stored.payload for stored in queue.ready]


def test_a_lock_that_is_not_renewed_ends_and_the_message_is_in_its_old_place(queue, clock):
    queue.add("a")
    token, _lock = queue.take()
    queue.add("b")
    clock.now += 29
    assert queue.renew(token) == clock.now + 30
    clock.now += 29
    assert not queue.tick()
    clock.now += 1

    assert queue.tick()

    assert payloads(queue) == ["a", "b"]
    assert not queue.complete(token)
    assert queue.renew(token) is None


def test_what_is_released_does_not_count_as_delivered_and_what_is_abandoned_does(queue):
    queue.add("a")
    for _ in range(9):
        assert queue.release(queue.take()[0])
    for _ in range(2):
        assert queue.abandon(queue.take()[0])
    assert payloads(queue) == ["a"]

    assert queue.abandon(queue.take()[0])

    assert payloads(queue) == []
    assert [(stored.payload, stored.reason[0]) for stored in queue.dead.ready] == [("a", TOO_MANY)]


def test_a_message_that_is_too_old_is_set_aside_unless_somebody_has_it(queue, clock):
    queue.add("held", ttl=5)
    queue.add("waits", ttl=5)
    token, _lock = queue.take()
    clock.now += 6

    queue.tick()

    assert [(stored.payload, stored.reason[0]) for stored in queue.dead.ready] == [("waits", EXPIRED)]
    assert queue.complete(token)


def test_in_the_dead_letter_queue_no_delivery_counts(queue):
    queue.add("a")
    assert queue.set_aside(queue.take()[0], "why", "at length")
    for _ in range(9):
        assert queue.dead.abandon(queue.dead.take()[0])

    assert payloads(queue.dead) == ["a"]
    assert queue.dead.ready[0].reason == ("why", "at length")
