"""Queues that are there already, in another way or another's, bounded ones, deleted ones; and how many consume."""

from contextlib import suppress
from uuid import uuid4

import pytest
from pika.exceptions import ChannelClosedByBroker

from jobs.sections_broker import Messaging
from tests.contract.test_bringing import made
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import running_rabbitmq
from tests.transitions import COMMITTED
from tests.transitions.rows import make_job
from workers.transports.messages import Dispatch
from workers.transports.topology import Topology

pytestmark = [COMMITTED]


def consumers(rabbit, queue="default"):
    """How many consumers the broker counts on the queue; None: there is no such queue."""
    with rabbit.raw() as channel, suppress(ChannelClosedByBroker):
        return channel.queue_declare(f"{rabbit.prefix}-{queue}", passive=True).method.consumer_count
    return None


def test_a_queue_declared_otherwise_is_used_as_it_is_and_said(rabbit, posts):
    with rabbit.raw() as channel:
        channel.queue_declare(f"{rabbit.prefix}-default", durable=True)
    post = posts(rabbit, {"default": 1, "critical": 1})
    jobs = [make_job(), make_job(queue="critical")]
    rabbit.announce(*jobs)
    assert set(post.has(2)) == {job.id for job in jobs}
    said = post.problems()
    assert f"{rabbit.prefix}-default is declared with other arguments" in said
    assert "messaging.queue_type" in said
    assert "critical" not in said
    assert post.broker.connected


def test_a_queue_that_is_another_connections_own_stops_no_other_one(rabbit, posts):
    with rabbit.raw() as channel:
        channel.queue_declare(f"{rabbit.prefix}-default", exclusive=True)
        post = posts(rabbit, {"default": 1, "critical": 1})
        urgent = make_job(queue="critical")
        rabbit.announce(urgent)
        assert post.has(1) == [urgent.id]
        eventually(lambda: f"refuses the queue {rabbit.prefix}-default" in post.problems(), "it says so")
    [job] = made(1)
    rabbit.announce(job)
    assert post.has(2) == [urgent.id, job.id]
    assert post.problems() == ""


def test_the_queue_of_what_can_not_be_processed_keeps_the_newest(house, posts):
    rabbit = house(error_queue_length=3)
    post = posts(rabbit)
    eventually(lambda: post.broker.connected, "it is connected")
    rabbit.publish(Dispatch(uuid4(), uuid4(), "default"))
    for n in range(5):
        rabbit.put("default", b"%d" % n)
        eventually(lambda: post.broker.poisoned == n + 1, "it is put aside")  # noqa: B023
    assert [body for body, _reason in rabbit.poisoned("default")] == [b"2", b"3", b"4"]


def test_a_full_post_consumes_nothing_and_a_free_one_again(rabbit, posts):
    post = posts(rabbit, {"default": 2})
    jobs = made(3)
    rabbit.announce(*jobs)
    post.has(2)
    eventually(lambda: consumers(rabbit) == 0, "nobody consumes")
    assert rabbit.ready("default") == 1
    post.finish(2)
    post.has(1)
    eventually(lambda: consumers(rabbit) == 1, "it consumes again")


@pytest.mark.parametrize(
    ("version", "limits"), [((3, 10, 8), [None]), ((3, 13), [None]), ((4, 0, 1), [-1, None]), ((0,), [None])]
)
def test_a_quorum_queue_has_no_limit_of_deliveries_where_the_server_knows_how_to_have_none(version, limits):
    topology = Topology(Messaging(queue_type="quorum"))
    ways = topology._ways("default", version)
    assert [way.get("x-delivery-limit") for way in ways] == limits
    assert {way["x-queue-type"] for way in ways} == {"quorum"}


def test_what_a_quorum_queue_gets_back_it_keeps(quorum, posts):
    jobs = made(2)
    post = posts(quorum, {"default": 1})
    quorum.announce(*jobs)
    post.has(1)
    for _ in range(25):  # a release with a limit of its own drops what came back twenty times
        eventually(lambda: quorum.ready("default") == 1, "it is back")
        with quorum.raw() as channel:
            method, _properties, _body = channel.basic_get(f"{quorum.prefix}-default")
            if method is not None:
                channel.basic_nack(method.delivery_tag, requeue=True)
    post.finish()
    post.has(1)


def test_a_queue_that_is_deleted_while_nobody_consumes_it_costs_a_channel_and_nothing_else(rabbit, posts):
    post = posts(rabbit, {"default": 1, "critical": 1})
    first, *jobs = make_job(), make_job(), make_job(queue="critical")
    rabbit.announce(first)
    post.has(1)
    eventually(lambda: consumers(rabbit) == 0, "nobody consumes")
    rabbit.delete("default")
    post.finish()  # it consumes again, of a queue that is not there: the broker closes the channel
    eventually(lambda: consumers(rabbit) == 1, "the queue is there again")
    rabbit.announce(*jobs)
    assert set(post.has(2)) == {job.id for job in jobs}
    assert f"{rabbit.prefix}-default was deleted" in post.problems()
    assert post.broker.connected


def test_a_delivery_whose_channel_is_closed_is_never_acknowledged(rabbit, posts):
    """Its tag may be another message's on the next channel."""
    post = posts(rabbit, {"critical": 1})
    eventually(lambda: post.broker.connected, "it is connected")
    rabbit.publish(*(Dispatch(uuid4(), uuid4(), "default") for _ in range(2)))
    link = post.broker._link
    got = []

    async def take():
        channel = await link.connection.channel()
        await channel.consume(f"{rabbit.prefix}-default", 1, got.append)
        return channel

    old = post.call(take()).result(60)
    eventually(lambda: got, "a message comes")
    post.call(old.close()).result(60)
    new = post.call(take()).result(60)
    eventually(lambda: len(got) == 2, "one comes by the next channel")
    stale, current = got
    assert stale.tag == current.tag == 1
    post.call(_ack(stale)).result(60)
    post.call(new.close()).result(60)
    eventually(lambda: rabbit.ready("default") == 2, "none was acknowledged")


async def _ack(incoming):
    incoming.ack()


def test_no_delivery_is_held_so_long_that_the_broker_minds(house, posts, tmp_path):
    """A job may run for hours: its message is acknowledged when it is claimed."""
    tick = "[{rabbit, [{channel_tick_interval, 500}]}]."
    with running_rabbitmq(tmp_path / "impatient", advanced=tick, consumer_timeout="1000") as node:
        rabbit = house(server=node)
        post = posts(rabbit, {"default": 2})
        jobs = made(6)
        rabbit.announce(*jobs)
        post.has(2)
        connected = post.broker._link.connection
        rabbit.publish(Dispatch(uuid4(), uuid4(), "held"))
        with rabbit.raw() as channel:
            channel.basic_consume(f"{rabbit.prefix}-held", lambda *_: None)
            with pytest.raises(ChannelClosedByBroker, match="timeout"):
                channel.start_consuming()  # this one holds it
        assert post.broker._link.connection is connected
        assert node.log.count("caused a channel exception") == 1
        post.finish(2)
        post.has(2)
        post.close()
        rabbit.close()
