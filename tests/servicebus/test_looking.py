"""How many messages a queue has, and what the service itself has set aside, which is announced again."""

import pytest

from tests.servicebus.desk import until
from tests.servicebus.test_receiving import connected, counts
from workers.transports import azurebus, buslooker

pytestmark = pytest.mark.slow


async def rival(bus):
    """Another reader of the queue."""
    reader = azurebus.Bus(bus.connection_string, 5.0, "rival").reader("turno-default")
    await reader.open()
    return reader


async def test_a_message_that_was_delivered_too_often_is_taken_from_the_dead_letter_queue(bus, desk, hire):
    worker = hire(critical=1)
    await connected(worker)
    messages = [desk.dispatch() for _ in range(2)]
    await worker.transport.publish(messages)
    reader = await rival(bus)
    while len(bus.dead("turno-default")) < 2:
        for delivery in await reader.receive(1, 2.0):
            await reader.abandon(delivery)
    await reader.close()
    assert [dead["reason"][0] for dead in bus.dead("turno-default")] == ["MaxDeliveryCountExceeded"] * 2

    assert await worker.transport.sweep(10) == messages

    assert bus.dead("turno-default") == []
    assert await worker.transport.sweep(10) == []


async def test_a_message_that_became_too_old_is_taken_too(bus, desk, hire):
    worker = hire(critical=1)
    await connected(worker)
    message = desk.dispatch()
    bus.inject("turno-default", message.body(), ttl=0.1)
    await until(lambda: bus.dead("turno-default"), "it is too old")

    await worker.transport.depth("default")  # from here on the worker knows of the queue

    assert await worker.transport.sweep(10) == [message]


async def test_what_was_put_there_because_it_can_not_be_processed_stays(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    bus.inject("turno-default", b"hello")
    await until(lambda: len(bus.dead("turno-default")) == 1, "it is put aside")
    await worker.transport.pause()
    refused = desk.dispatch()
    bus.inject("turno-default", refused.body())
    bus.inject("turno-default", b'{"v":1}')
    bus.do("bury", queue="turno-default", reason="turno")
    swept = desk.dispatch()
    bus.inject("turno-default", swept.body())
    bus.do("bury", queue="turno-default", reason="SomebodyElse")

    assert await worker.transport.sweep(10) == [swept]

    assert [dead["body"] for dead in bus.dead("turno-default")] == [b"hello", refused.body(), b'{"v":1}']


async def test_no_more_than_asked_for_are_taken_at_once(bus, desk, hire):
    worker = hire(critical=1)
    await connected(worker)
    messages = [desk.dispatch() for _ in range(5)]
    await worker.transport.publish(messages)
    bus.do("bury", queue="turno-default", reason="x")

    assert await worker.transport.sweep(3) == messages[:3]
    assert await worker.transport.sweep(3) == messages[3:]


async def test_the_depth_of_a_queue_counts_what_waits_and_what_somebody_has_page_by_page(bus, desk, hire, monkeypatch):
    monkeypatch.setattr(azurebus, "PAGE", 4)
    worker = hire(critical=1)
    await connected(worker)
    assert await worker.transport.depth("default") == 0
    await worker.transport.publish([desk.dispatch() for _ in range(10)])
    reader = await rival(bus)
    await reader.receive(3, 2.0)

    assert await worker.transport.depth("default") == 10
    assert counts(bus) == {"ready": 7, "locked": 3, "completed": 0}
    await reader.close()


async def test_of_more_messages_than_are_counted_and_of_a_queue_that_is_not_there_no_depth_is_told(
    bus, desk, hire, monkeypatch
):
    monkeypatch.setattr(buslooker, "COUNTED", 5)
    worker = hire(critical=1)
    await connected(worker)
    await worker.transport.publish([desk.dispatch() for _ in range(5)])

    assert await worker.transport.depth("default") is None
    assert await worker.transport.depth("never-was") is None


async def test_a_look_after_its_connection_ended_connects_anew(bus, desk, hire):
    worker = hire(critical=1)
    await connected(worker)
    assert await worker.transport.depth("default") == 0
    bus.do("drop")
    await until(lambda: bus.do("connections")["connections"] > 0, "it comes back")

    assert await worker.transport.depth("default") == 0
