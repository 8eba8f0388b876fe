"""The lock of a message is lost, or the connection that it came by: the message comes again, its job does not."""

import asyncio

import pytest

from tests.servicebus.desk import until
from tests.servicebus.test_receiving import connected, counts

pytestmark = pytest.mark.slow


async def test_a_lock_that_ends_in_the_middle_of_a_claim_costs_nothing_but_a_duplicate(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    desk.hold = asyncio.Event()
    message = desk.dispatch()
    await worker.transport.publish([message])
    await until(lambda: counts(bus)["locked"] == 1, "delivered")

    bus.do("expire_locks", queue="turno-default")
    assert counts(bus) == {"ready": 1, "locked": 0, "completed": 0}
    desk.hold.set()
    await until(lambda: worker.held, "its job starts")
    worker.finish()

    await until(lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 1}, "the duplicate is dropped")
    assert (desk.started, desk.asked) == ({message.token: 1}, {message.token: 2})
    assert worker.transport.problems() == []


async def test_what_a_vanished_worker_had_comes_to_another_when_the_lock_ends(bus, desk, hire):
    vanished = hire(default=1)
    await connected(vanished)
    desk.hold = asyncio.Event()
    message = desk.dispatch()
    await vanished.transport.publish([message])
    await until(lambda: counts(bus)["locked"] == 1, "delivered")
    other = hire(default=1)
    await connected(other)

    bus.do("expire_locks", queue="turno-default")
    await until(lambda: desk.asked[message.token] == 0 and counts(bus)["locked"] == 1, "the other has it")
    desk.hold.set()

    await until(lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 1}, "it is done with")
    await until(lambda: desk.asked[message.token] == 2, "both have asked")
    assert desk.started == {message.token: 1}


async def test_a_message_whose_connection_was_lost_while_it_was_claimed_is_completed_when_it_comes_again(
    bus, desk, hire
):
    worker = hire(default=1)
    await connected(worker)
    desk.hold = asyncio.Event()
    message = desk.dispatch()
    await worker.transport.publish([message])
    await until(lambda: counts(bus)["locked"] == 1, "delivered")

    bus.do("drop")
    desk.hold.set()
    await until(lambda: worker.held, "its job starts")
    worker.finish()
    bus.do("expire_locks", queue="turno-default")

    await until(lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 1}, "completed")
    assert desk.started == {message.token: 1}


async def test_a_worker_that_ends_leaves_no_lock(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    await worker.transport.publish([desk.dispatch() for _ in range(4)])
    await until(lambda: worker.held, "one is held")

    await worker.close()

    assert counts(bus) == {"ready": 3, "locked": 0, "completed": 1}
    assert bus.do("connections")["connections"] == 0
