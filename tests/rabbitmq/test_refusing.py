"""A queue that refuses, or does not answer, holds up no message for another one, however many it gets itself."""

import asyncio
from types import SimpleNamespace
from uuid import uuid4

import pytest

from jobs.sections_broker import Messaging
from tests.kit.processes import eventually
from tests.transitions import COMMITTED
from workers.transports import outlet as transport
from workers.transports.amqp import Options
from workers.transports.base import BrokerAway
from workers.transports.channel import Answer
from workers.transports.messages import Dispatch
from workers.transports.outlet import Letter, Outlet
from workers.transports.topology import Topology


class Channel:
    """A channel of a broker that says to each queue what the test wants; None: nothing, ever."""

    def __init__(self, **answers):
        self.answers = answers
        self.published = []
        self.unconfirmed = 0
        self.closed = False

    def publish(self, queue, _body, _properties):
        future = asyncio.get_running_loop().create_future()
        name = queue.removeprefix("turno-")
        self.published.append(name)
        if (answer := self.answers.get(name, Answer.CONFIRMED)) is not None:
            future.set_result(answer)
        else:
            self.unconfirmed += 1
        return future

    async def close(self):
        self.closed = True


class Server:
    """A connection that is there."""

    blocked = False
    alive = True

    async def answers(self, _limit):
        return self.alive

    async def close(self, _limit):
        self.blocked = True


def outlet(channel, timeout=0.2):
    made = Outlet(Options((), 30, 5, "test"), Topology(Messaging()), timeout=timeout, longest=1)
    made._channel = channel
    made.link.connection = Server()
    return made


def letters(*queues):
    return [Letter(queue, b"x", {"message_id": str(uuid4())}) for queue in queues]


def errors(answers):
    return [answer.error for answer in answers]


async def _errors(made, *queues):
    return errors(await made.send(letters(*queues)))


def test_a_queue_that_refuses_is_tried_again_at_once_the_first_time_only(monkeypatch):
    monkeypatch.setattr(transport, "AGAIN", (0.0, 0.001))

    async def run():
        channel = Channel(full=Answer.REFUSED)
        made = outlet(channel)
        assert await _errors(made, "full", "default", "full") == [transport.REFUSED, None, transport.REFUSED]
        assert channel.published.count("full") == 6
        assert await _errors(made, "full", "default") == [transport.REFUSED, None]
        assert channel.published.count("full") == 7
        channel.answers.clear()  # there is room again
        assert await _errors(made, "full") == [None]
        channel.answers["full"] = Answer.REFUSED
        await _errors(made, "full")
        assert channel.published.count("full") == 8 + 3

    asyncio.run(run())


def test_a_queue_that_never_answers_is_hardly_waited_for_the_second_time(monkeypatch):
    waits = []
    wait = asyncio.wait

    async def watched(futures, timeout=None):
        if futures:
            waits.append(timeout)
        return await wait(futures, timeout=timeout)

    monkeypatch.setattr(asyncio, "wait", watched)
    monkeypatch.setattr(transport, "SHORTLY", 0.01)

    async def run():
        channel = Channel(silent=None)
        made = outlet(channel)
        assert await _errors(made, "silent", "default") == [transport.UNCONFIRMED, None]
        assert len(waits) == 1
        waits.clear()
        assert await _errors(made, "silent", "default") == [transport.UNCONFIRMED, None]
        assert len(waits) == 2  # the others with the usual patience, which they did not need
        assert waits[1] <= 0.01

    asyncio.run(run())


def test_a_broker_that_answers_nothing_at_all_is_away(monkeypatch):
    monkeypatch.setattr(transport, "SHORTLY", 0.01)

    async def run():
        made = outlet(Channel(silent=None))
        await _errors(made, "silent")
        made.link.connection.alive = False
        with pytest.raises(BrokerAway):
            await _errors(made, "silent")

    asyncio.run(run())


def test_what_is_never_confirmed_does_not_pile_up(monkeypatch):
    monkeypatch.setattr(transport, "UNCONFIRMED_MOST", 3)
    monkeypatch.setattr(transport, "SHORTLY", 0.01)

    async def run():
        channel = Channel(silent=None)
        made = outlet(channel, 0.02)
        await _errors(made, *["silent"] * 3)
        assert not channel.closed
        await _errors(made, "silent")
        assert channel.closed

    asyncio.run(run())


def test_a_queue_that_can_not_be_declared_in_time_is_given_up(monkeypatch):
    monkeypatch.setattr(transport, "AGAIN", (0.0,))
    monkeypatch.setattr(transport, "ALIVE", 0.01)

    async def run():
        made = outlet(Channel(stuck=Answer.UNROUTABLE), 30)
        hangs = asyncio.Event()

        async def declare(_connection, _queue):
            await hangs.wait()

        made._topology = SimpleNamespace(name="turno-{}".format, declare=declare)
        assert await _errors(made, "stuck", "default") == [transport.UNROUTABLE, None]

    asyncio.run(run())


@COMMITTED
def test_a_message_for_a_full_queue_says_so_each_time(rabbit, posts):
    with rabbit.raw() as channel:
        full = {"x-max-length": 1, "x-overflow": "reject-publish", "x-max-priority": 20}
        channel.queue_declare(f"{rabbit.prefix}-critical", durable=True, arguments=full)
    post = posts(rabbit, {"new": 1})
    eventually(lambda: post.broker.connected, "it is connected")
    for n in range(3):
        messages = [Dispatch(uuid4(), uuid4(), queue) for queue in ("critical", "default", "critical", "critical")]
        answers = errors(post.call(post.broker.publish(messages)).result(30))
        assert answers[1] is None
        assert answers.count(transport.REFUSED) == (2 if n == 0 else 3)
    with rabbit.raw() as channel:
        channel.queue_purge(f"{rabbit.prefix}-critical")
    last = [Dispatch(uuid4(), uuid4(), "critical")]
    assert errors(post.call(post.broker.publish(last)).result(30)) == [None]
