"""Queues that are not there, a service that is away or silent: said in words, and work goes on by itself."""

import sys
from uuid import uuid4

import pytest
from azure.servicebus.aio import ServiceBusClient

from jobs.conf import ConfigurationError
from tests.servicebus.desk import Worker, until
from tests.servicebus.test_receiving import connected, counts
from workers.transports import azurebus, busfeed, buslibrary
from workers.transports.base import BrokerAway
from workers.transports.messages import DeadLetter

pytestmark = pytest.mark.slow
NOT_THERE = "The queue turno-new does not exist in Service Bus: an administrator has to create it."


def told(worker):
    return [problem["error"] for problem in worker.transport.problems()]


async def test_a_queue_that_does_not_exist_is_named_and_stops_no_other_and_is_used_once_it_is_there(
    bus, desk, hire, monkeypatch
):
    monkeypatch.setattr(busfeed, "LOOK_AGAIN", 0.2)
    worker = hire(default=1, new=1)
    await connected(worker)

    await until(lambda: NOT_THERE in told(worker), "it is said")
    message = desk.dispatch()
    await worker.transport.publish([message])
    await until(lambda: worker.held, "the other queue works")
    bus.create("turno-new")
    await until(lambda: told(worker) == [], "all is well")
    new = desk.dispatch("new")
    await worker.transport.publish([new])
    await until(lambda: len(worker.held) == 2, "the new one works too")


async def test_what_is_sent_to_a_queue_that_does_not_exist_fails_alone(bus, desk, hire):
    worker = hire(default=2)
    await connected(worker)
    answers = await worker.transport.publish([desk.dispatch(), desk.dispatch("new"), desk.dispatch()])

    assert [answer.error for answer in answers] == [None, NOT_THERE, None]
    assert told(worker) == [NOT_THERE]
    bus.create("turno-new")
    [answer] = await worker.transport.publish([desk.dispatch("new")])
    assert answer.error is None
    assert told(worker) == []


async def test_a_queue_that_refuses_what_is_sent_fails_alone(bus, desk, hire):
    worker = hire(default=1, critical=1)
    await connected(worker)
    bus.do("refuse", queue="turno-critical", condition="amqp:resource-limit-exceeded")

    answers = await worker.transport.publish([desk.dispatch("critical"), desk.dispatch()])

    assert answers[1].error is None
    assert "refused by the test" in answers[0].error
    bus.do("refuse", queue="turno-critical", condition=None)
    [answer] = await worker.transport.publish([desk.dispatch("critical")])
    assert answer.error is None


async def test_letters_go_to_their_own_queue(bus, hire):
    worker = hire(default=1)
    await connected(worker)
    letter = DeadLetter(uuid4(), {"letter": str(uuid4()), "error": "it failed: ç", "stack": "x" * 100_000})

    [answer] = await worker.transport.publish([letter])

    assert answer.error is None
    [found] = bus.messages("turno-dead-letter")
    assert (found["id"], found["body"]) == (letter.id, letter.body())


async def test_more_than_a_batch_holds_goes_in_several_and_a_message_that_fits_in_none_fails_alone(bus, hire):
    worker = hire(default=1)
    await connected(worker)
    sizes = [200_000] * 7 + [2_000_000] + [200_000]
    letters = [DeadLetter(uuid4(), {"letter": n, "stack": "x" * size}) for n, size in enumerate(sizes)]

    answers = await worker.transport.publish(letters)

    assert [answer.error is None for answer in answers] == [True] * 7 + [False, True]
    assert counts(bus, "turno-dead-letter")["ready"] == 8


async def test_while_the_service_is_away_it_is_said_and_nothing_is_published_and_afterwards_all_goes_on(
    bus, desk, hire
):
    worker = hire(default=1)
    await connected(worker)
    bus.do("leave")
    await until(lambda: not worker.transport.connected, "it has noticed")
    [problem] = told(worker)
    assert problem.startswith("The broker has been away since ")
    for ask in (
        worker.transport.publish([desk.dispatch()]),
        worker.transport.depth("default"),
        worker.transport.sweep(9),
    ):
        with pytest.raises(BrokerAway):
            await ask

    bus.do("return")
    await connected(worker)
    assert told(worker) == []
    message = desk.dispatch()
    await worker.transport.publish([message])
    await until(lambda: worker.held, "it comes")


async def test_a_worker_all_of_whose_slots_are_taken_notices_that_the_service_is_back(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    await worker.transport.publish([desk.dispatch()])
    await until(lambda: worker.held, "its only slot is taken")
    bus.do("leave")
    with pytest.raises(BrokerAway):
        await worker.transport.publish([desk.dispatch()])
    assert not worker.transport.connected

    bus.do("return")

    await connected(worker)


async def test_connections_that_end_come_back_every_time(bus, desk, hire):
    worker = hire(default=3)
    await connected(worker)
    for n in range(3):
        bus.do("drop")
        await connected(worker)
        message = desk.dispatch()
        await until_published(worker, message)
        await until(lambda n=n: len(worker.held) == n + 1, "it comes")


async def until_published(worker, message):
    """As the relay does: again while there is no broker."""
    while True:
        try:
            [answer] = await worker.transport.publish([message])
        except BrokerAway:
            continue
        assert answer.error is None
        return


async def test_a_service_that_lost_everything_takes_work_again(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    lost = desk.dispatch("critical")
    await worker.transport.publish([lost])

    bus.stop()
    await until(lambda: not worker.transport.connected, "it has noticed")
    bus.start()
    bus.create("turno-default", "turno-critical")

    await connected(worker)
    assert await worker.transport.depth("critical") == 0
    message = desk.dispatch()
    await until_published(worker, message)
    await until(lambda: worker.held, "it comes")


async def test_a_service_that_says_nothing_is_away_until_it_speaks_again(bus, desk, hire):
    worker = hire({"publish_timeout": 1, "connect_timeout": 3}, default=1)
    await connected(worker)
    with bus.frozen():
        with pytest.raises(BrokerAway):
            await worker.transport.publish([desk.dispatch()])
        with pytest.raises(BrokerAway):
            await worker.transport.depth("default")
        assert not worker.transport.connected

    await connected(worker)
    message = desk.dispatch()
    await until_published(worker, message)
    await until(lambda: worker.held, "it comes")


async def test_without_the_extra_one_sentence_says_what_to_install(bus, desk, monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.servicebus.aio", None)

    with pytest.raises(ConfigurationError, match=r"install turno\[azure\]"):
        Worker(bus, desk, {"default": 1})


async def test_a_connection_string_that_can_not_be_one_is_said(bus, desk):
    with pytest.raises(ConfigurationError, match="azure_connection_string can't be used") as refused:
        azurebus.Bus("Endpoint=sb://x.example;SharedAccessKey=c2VjcmV0", 1.0, "test")
    assert "c2VjcmV0" not in str(refused.value)


async def test_the_library_still_has_what_we_touch_of_it(bus):
    receiver = ServiceBusClient.from_connection_string(bus.connection_string).get_queue_receiver("turno-default")

    assert getattr(receiver, buslibrary.AWAITS_OUTCOME) is True
    assert callable(getattr(receiver, buslibrary.MAKES_HANDLER))
