"""What a worker says about deliveries leaves in few words, and means each delivery that was spoken of and no other."""

import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from pika import BasicProperties

from tests.kit.rabbitmq_server import raw
from workers.transports.amqp import Options, connect

HELD = 12
WAYS = {
    "all done with": ("a" * HELD, "", 1),
    "all given back": ("g" * HELD, "0123456789AB", 1),
    "in turns": ("aaaaggggaaaa", "4567", 3),
    "the last one waits": ("aaaaaaaaaaa.", "B", 1),
    "the first one waits": (".aaaagaaaaaa", "05", 11),
    "one in between waits": ("aaa.gggagaaa", "34568", 9),
    "nothing": ("." * HELD, "0123456789AB", 0),
}


@asynccontextmanager
async def holding(url, queue):
    """A channel, and the twelve messages that it has been brought and no more of."""
    connection = await connect(Options((url,), 30, 60, "test"))
    try:
        channel, brought = await connection.channel(), []
        tag = await channel.consume(queue, HELD, brought.append)
        async with asyncio.timeout(60):
            while len(brought) < HELD:
                await asyncio.sleep(0.01)
        await channel.cancel(tag)
        yield connection, channel, brought
    finally:
        await connection.close(60)


@pytest.fixture
def queue(rabbitmq):
    """A queue with twelve messages, of which each is a digit."""
    name = f"words-{uuid4().hex}"
    with raw(rabbitmq.url) as channel:
        channel.queue_declare(name)
        channel.confirm_delivery()
        for n in range(HELD):
            channel.basic_publish("", name, b"%X" % n, BasicProperties(priority=n))
        yield name
        channel.queue_delete(name)


def left(url, queue):
    """What is in the queue, in its order."""
    with raw(url) as channel:
        return b"".join(iter(lambda: channel.basic_get(queue, auto_ack=True)[2] or b"", b"")).decode()


@pytest.mark.parametrize(("words", "back", "sent"), WAYS.values(), ids=WAYS)
def test_each_delivery_is_what_was_said_about_it_in_as_few_words_as_it_takes(words, back, sent, rabbitmq, queue):
    async def run():
        async with holding(rabbitmq.url, queue) as (connection, channel, brought):
            before = connection._native.frames_sent
            for one, word in sorted(zip(brought, words, strict=True), key=lambda pair: pair[0].body, reverse=True):
                if word != ".":
                    (one.ack if word == "a" else one.give_back)()
            await asyncio.sleep(0)
            assert connection._native.frames_sent - before == sent
            await channel.close()

    asyncio.run(run())
    assert left(rabbitmq.url, queue) == back


def test_a_second_word_about_a_delivery_is_none(rabbitmq, queue):
    """AMQP closes a channel over it."""

    async def run():
        async with holding(rabbitmq.url, queue) as (_connection, channel, brought):
            brought[0].ack()
            brought[0].give_back()
            await asyncio.sleep(0)
            brought[0].ack()
            brought[1].ack()
            await channel.close()
            assert str(channel.gone.result()) == "Normal shutdown (0)"
            brought[2].ack()

    asyncio.run(run())
    assert left(rabbitmq.url, queue) == "23456789AB"


def test_what_is_said_just_before_the_channel_closes_is_said(rabbitmq, queue):
    async def run():
        async with holding(rabbitmq.url, queue) as (_connection, channel, brought):
            for one in brought[:5]:
                one.ack()
            await channel.close()

    asyncio.run(run())
    assert left(rabbitmq.url, queue) == "56789AB"


def test_properties_are_read_when_somebody_asks(rabbitmq, queue):
    async def run():
        async with holding(rabbitmq.url, queue) as (_connection, _channel, brought):
            assert [one.priority for one in brought] == list(range(HELD))
            assert {one.content_type for one in brought} == {None}

    asyncio.run(run())
