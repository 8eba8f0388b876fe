"""A wrong key, no right to a queue, a service that is too busy, links and connections that it ends: each said in words,
none with a secret in it, and afterwards work goes on by itself."""

import asyncio
import logging
import time

import pytest

from tests.kit.servicebus import running_service_bus
from tests.servicebus.desk import Worker, until
from tests.servicebus.test_faults import told, until_published
from tests.servicebus.test_receiving import connected, counts
from workers.transports import busfeed
from workers.transports.base import BrokerAway

pytestmark = pytest.mark.slow
SECRET = "c2VjcmV0"
WRONG_KEY = "InvalidSignature: The token has an invalid signature."


@pytest.fixture
def impatient(monkeypatch):
    """A queue that was refused is asked for again soon."""
    monkeypatch.setattr(busfeed, "LOOK_AGAIN", 0.2)


async def works(bus, desk, worker):
    """One more job comes."""
    before = len(worker.held)
    await until_published(worker, desk.dispatch())
    await until(lambda: len(worker.held) == before + 1, "it comes")


def assert_no_secret(caplog, *said):
    everything = [*said, caplog.text, *(str(vars(record)) for record in caplog.records)]
    assert SECRET not in "".join(everything)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_said_without_the_key_and_once_it_is_right_work_goes_on(bus, desk, hire, caplog, status):
    caplog.set_level(logging.DEBUG)
    bus.do("token", status=status, words=WRONG_KEY)
    worker = hire(default=1)
    said = f"the key of the connection string is refused: {WRONG_KEY}"
    await until(lambda: any(said in error for error in told(worker)), "it is said")
    with pytest.raises(BrokerAway, match="key of the connection string"):  # the fault of none of the rows
        await worker.transport.publish([desk.dispatch()])
    assert not worker.transport.connected
    assert_no_secret(caplog, *told(worker))

    bus.do("token")
    await connected(worker)
    await works(bus, desk, worker)
    assert told(worker) == []


@pytest.mark.usefixtures("impatient")
async def test_a_queue_to_which_the_key_has_no_right_is_named_and_stops_no_other(bus, desk, hire, caplog):
    bus.do("bar", queue="turno-critical", condition="amqp:unauthorized-access")
    worker = hire(default=2, critical=1)
    await until(lambda: any("turno-critical" in error for error in told(worker)), "it is said")
    await works(bus, desk, worker)
    answers = await worker.transport.publish([desk.dispatch("critical"), desk.dispatch()])
    assert answers[0].error
    assert answers[1].error is None
    assert_no_secret(caplog, *told(worker))

    bus.do("bar", queue="turno-critical", condition=None)
    await worker.transport.publish([desk.dispatch("critical")])
    await until(lambda: told(worker) == [], "all is well")
    await until(lambda: any(held.claim.queue == "critical" for held in worker.held), "it is used")


async def test_a_service_that_is_too_busy_is_away_for_now_and_blames_no_message(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    bus.do("refuse", queue="turno-default", condition="com.microsoft:server-busy")
    with pytest.raises(BrokerAway):
        await worker.transport.publish([desk.dispatch()])
    bus.do("refuse", queue="turno-default", condition=None)
    await works(bus, desk, worker)
    await until(lambda: told(worker) == [], "all is well")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("amqp:link:detach-forced", "The link was detached because it was idle for 10 minutes."),
        ("com.microsoft:server-busy", "The request was terminated because the namespace is being throttled."),
        ("amqp:internal-error", "The service was unable to process the request."),
        ("amqp:unauthorized-access", "The token is expired."),
    ],
)
async def test_links_that_the_service_ends_come_back(bus, desk, hire, condition, words):
    worker = hire(default=4)
    await connected(worker)
    await until(lambda: bus.do("connections")["receivers"] >= 1, "it receives")
    for _ in range(2):
        bus.do("detach", queue="turno-default", condition=condition, words=words)
        await works(bus, desk, worker)
    await until(lambda: told(worker) == [], "all is well")
    assert set(desk.started.values()) == {1}


async def test_connections_that_the_service_ends_because_nothing_was_said_come_back(bus, desk, hire):
    worker = hire(default=4)
    await connected(worker)
    for _ in range(2):
        await until(lambda: counts(bus)["ready"] + counts(bus)["locked"] == 0, "nothing is on its way", 60)
        assert await worker.transport.depth("default") == 0
        bus.do("close", condition="amqp:connection:forced", words="The connection was inactive for 300000 ms.")
        await works(bus, desk, worker)
        assert await worker.transport.sweep(5) == []
    await until(lambda: told(worker) == [], "all is well")


async def test_a_worker_that_stands_still_with_a_message_loses_it_to_another_and_starts_nothing_twice(tmp_path, desk):
    """It stands still between the message's coming and its claim, for longer than the message is locked for it."""
    with running_service_bus(tmp_path, ["turno-default"], lock_seconds=1.0) as bus:
        frozen = Worker(bus, desk, {"default": 1})
        try:
            await connected(frozen)
            desk.hold = asyncio.Event()
            message = desk.dispatch()
            await until_published(frozen, message)
            await until(lambda: counts(bus)["locked"] == 1, "delivered")
            while counts(bus)["ready"] == 0:  # the whole process stands still, until the lock has ended
                time.sleep(0.05)
            other = Worker(bus, desk, {"default": 1})
            try:
                desk.hold.set()
                await until(lambda: desk.started[message.token] == 1, "its job starts", 30)
                await until(
                    lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 1}, "and no message stays", 30
                )
                assert len(frozen.held) + len(other.held) == 1
                assert desk.started == {message.token: 1}
                assert told(frozen) == told(other) == []
            finally:
                await other.close()
        finally:
            await frozen.close()


async def test_at_the_start_it_is_said_that_there_are_no_priorities(hire, caplog):
    caplog.set_level(logging.INFO)
    hire(default=1)
    [record] = [record for record in caplog.records if record.message == "transport.no_priorities"]
    assert "knows no priorities" in record.meaning
