"""Messages are received for free slots only, and completed once the claim that they led to has decided."""

import asyncio

import pytest

from tests.servicebus.desk import until

pytestmark = pytest.mark.slow
GARBAGE = [b"", b"hello", b"[]", b'{"v":1}', b'{"v":2,"job":"x"}', b"\xff\xfe\x00", b"{" * 5000, b'{"v":1,"job":1}']


async def connected(*workers):
    for worker in workers:
        await until(lambda worker=worker: worker.transport.connected, "connected")


def counts(bus, queue="turno-default"):
    return bus.do("counts")[queue]


async def test_a_message_is_completed_when_its_job_was_claimed_and_not_before(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    desk.hold = asyncio.Event()
    message = desk.dispatch()

    [answer] = await worker.transport.publish([message])
    assert answer.error is None
    await until(lambda: counts(bus) == {"ready": 0, "locked": 1, "completed": 0}, "delivered")
    await asyncio.sleep(0.3)
    assert counts(bus)["locked"] == 1
    desk.hold.set()

    await until(lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 1}, "completed")
    assert [held.claim.dispatch_id for held in worker.held] == [message.token]


async def test_a_busy_worker_holds_no_message(bus, desk, hire):
    worker = hire(default=2)
    await connected(worker)
    await worker.transport.publish([desk.dispatch() for _ in range(5)])

    await until(lambda: counts(bus) == {"ready": 3, "locked": 0, "completed": 2}, "two are taken")
    worker.finish()
    await until(lambda: counts(bus) == {"ready": 2, "locked": 0, "completed": 3}, "one more is taken")
    await asyncio.sleep(0.3)
    assert counts(bus) == {"ready": 2, "locked": 0, "completed": 3}


async def test_each_queue_has_its_own_slots(bus, desk, hire):
    worker = hire(default=1, critical=2)
    await connected(worker)
    await worker.transport.publish([desk.dispatch(queue) for queue in ("default", "critical") for _ in range(3)])

    await until(lambda: len(worker.held) == 3, "three are held")
    await until(lambda: (counts(bus)["ready"], counts(bus, "turno-critical")["ready"]) == (2, 1), "the others wait")
    slots = {(held.claim.queue, held.claim.slot) for held in worker.held}
    assert slots == {("default", 1), ("critical", 1), ("critical", 2)}


async def test_the_oldest_comes_first(desk, hire):
    first = hire(default=1)
    await connected(first)
    messages = [desk.dispatch() for _ in range(4)]
    for message in messages:
        await first.transport.publish([message])

    seen = []
    for _ in messages:
        await until(lambda: first.held, "the next is held")
        seen.append(first.held[0].claim.dispatch_id)
        first.finish()

    assert seen == [message.token for message in messages]


async def test_a_message_that_comes_twice_starts_its_job_once(bus, desk, hire):
    worker = hire(default=3)
    await connected(worker)
    message = desk.dispatch()
    await worker.transport.publish([message, message])

    await until(lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 2}, "both are completed")
    assert desk.started == {message.token: 1}


async def test_when_it_pauses_what_was_not_claimed_goes_back_and_nothing_more_comes(bus, desk, hire):
    worker = hire(default=2)
    await connected(worker)
    await worker.transport.pause()
    worker.transport.room("default", 2)
    await worker.transport.publish([desk.dispatch()])

    await asyncio.sleep(0.3)
    assert counts(bus) == {"ready": 1, "locked": 0, "completed": 0}
    assert worker.transport.connected


async def test_of_a_paused_queue_nothing_is_received_until_it_goes_on(bus, desk, hire):
    worker = hire(default=2, critical=1)
    await connected(worker)
    desk.stopped = {"default"}
    await worker.transport.publish([desk.dispatch(), desk.dispatch("critical")])

    await until(lambda: [held.claim.queue for held in worker.held] == ["critical"], "the other queue goes on")
    await until(lambda: counts(bus) == {"ready": 1, "locked": 0, "completed": 0}, "it went back")
    before = bus.do("connections")["receivers"]
    await asyncio.sleep(0.5)
    assert counts(bus)["ready"] == 1
    assert bus.do("connections")["receivers"] == before
    desk.stopped = set()
    await until(lambda: len(worker.held) == 2, "it is taken")


async def test_while_the_database_is_away_no_message_is_completed_and_none_is_held(bus, desk, hire):
    worker = hire(default=2)
    await connected(worker)
    desk.away = True
    messages = [desk.dispatch() for _ in range(3)]
    await worker.transport.publish(messages)

    await until(lambda: desk.away and counts(bus) == {"ready": 3, "locked": 0, "completed": 0}, "all went back")
    await asyncio.sleep(0.5)
    assert counts(bus) == {"ready": 3, "locked": 0, "completed": 0}
    deliveries = sum(message["deliveries"] for message in bus.messages("turno-default"))
    assert deliveries <= len(messages)  # it does not go round and round meanwhile
    desk.away = False
    await until(lambda: counts(bus)["completed"] == 2, "two run")
    assert set(desk.started.values()) == {1}


async def test_garbage_goes_with_its_reason_into_the_dead_letter_queue_and_is_counted(bus, desk, hire):
    worker = hire(default=1)
    await connected(worker)
    for body in GARBAGE:
        bus.inject("turno-default", body)
    message = desk.dispatch()
    await worker.transport.publish([message])

    await until(lambda: len(worker.held) == 1, "what is none stands in nobody's way")
    await until(lambda: len(bus.dead("turno-default")) == len(GARBAGE), "all are set aside")
    assert {reason for reason, _why in (dead["reason"] for dead in bus.dead("turno-default"))} == {"turno"}
    assert all(why for _reason, why in (dead["reason"] for dead in bus.dead("turno-default")))
    assert worker.transport.poisoned == len(GARBAGE)
    assert worker.transport.problems() == []


async def test_where_there_is_a_queue_for_errors_garbage_goes_there(bus, desk, hire):
    bus.create("turno-default_error")
    worker = hire(default=1)
    await connected(worker)
    bus.inject("turno-default", b"hello")

    await until(lambda: counts(bus, "turno-default_error")["ready"] == 1, "it is there")
    await until(lambda: counts(bus) == {"ready": 0, "locked": 0, "completed": 1}, "and not here")
    [found] = bus.messages("turno-default_error")
    assert (found["body"], found["reason"]) == (b"hello", None)
    assert found["properties"] == {"reason": "the body is no JSON"}
    assert bus.dead("turno-default") == []
