"""The server blocks, freezes, refuses, shuts out: what cannot go on waits, is said in plain words, and goes on."""

import socket
import time
from uuid import uuid4

import pytest

from tests.contract.test_bringing import made, states
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import RabbitServer
from tests.transitions import COMMITTED
from turno.launcher import ports
from workers.transports.base import BrokerAway
from workers.transports.messages import Dispatch

pytestmark = [COMMITTED]
MEMORY = ("set_vm_memory_high_watermark", "absolute")


def connected(post):
    eventually(lambda: post.broker.connected, "it is connected")


def publish(post, *messages):
    """What the post's own transport says to publishing these."""
    return post.call(post.broker.publish(messages)).result(30)


def test_a_server_short_of_memory_takes_no_messages_and_still_gives_them(rabbit, posts):
    post = posts(rabbit, {"default": 3})
    connected(post)
    jobs = made(3)
    rabbit.announce(*jobs[:2])
    post.has(2)
    rabbit.announce(jobs[2])
    post.has(3)
    more = made(3)
    rabbit.announce(*more)  # full: they wait
    rabbit.server.ctl(*MEMORY, "1")
    try:
        started = time.monotonic()
        with pytest.raises(BrokerAway):  # the first that is published tells; it is confirmed when there is memory again
            publish(post, Dispatch(uuid4(), uuid4(), "default"))
        assert time.monotonic() - started < 15
        eventually(lambda: "its memory or its disk is nearly full" in post.problems(), "it says so")
        assert not post.broker.connected
        with pytest.raises(BrokerAway, match="nearly full"):
            publish(post, Dispatch(uuid4(), uuid4(), "default"))
        post.finish(3)
        assert set(post.has(3)) == {job.id for job in more}  # what frees the memory goes on
    finally:
        rabbit.server.ctl(*MEMORY, "512MB")
    connected(post)
    assert post.problems() == ""
    assert [answer.error for answer in publish(post, Dispatch(uuid4(), uuid4(), "default"))] == [None]
    post.finish(3)
    eventually(lambda: rabbit.ready("default") == 0, "what came late was confirmed, and is dropped")


def test_a_message_that_the_broker_refuses_is_said_and_the_others_are_published(rabbit, posts):
    with rabbit.raw() as channel:
        full = {"x-max-length": 1, "x-overflow": "reject-publish", "x-max-priority": 20}
        channel.queue_declare(f"{rabbit.prefix}-critical", durable=True, arguments=full)
    post = posts(rabbit, {"new": 1})
    connected(post)
    good = [Dispatch(uuid4(), uuid4(), "default") for _ in range(3)]
    refused = [Dispatch(uuid4(), uuid4(), "critical") for _ in range(3)]
    answers = publish(post, refused[0], good[0], refused[1], good[1], refused[2], good[2])
    errors = [answer.error for answer in answers]
    assert errors[1::2] == [None] * 3
    assert errors.count("the broker refused the message") == 2
    assert rabbit.ready("default") == 3


def test_a_broker_that_is_frozen_confirms_nothing_and_is_given_up(house, posts):
    rabbit = house(publish_timeout=1)
    post = posts(rabbit)
    connected(post)
    rabbit.publisher()
    rabbit.server.freeze()
    try:
        with pytest.raises(BrokerAway):
            publish(post, Dispatch(uuid4(), uuid4(), "default"))
        assert not post.broker.connected
    finally:
        rabbit.server.thaw()
    [job] = made(1)
    rabbit.announce(job)
    assert post.has(1, 40) == [job.id]


def test_a_worker_ends_in_seconds_when_the_broker_is_frozen(rabbit, posts):
    post = posts(rabbit)
    connected(post)
    rabbit.server.freeze()
    try:
        started = time.monotonic()
        post.close()
        assert time.monotonic() - started < 10
    finally:
        rabbit.server.thaw()


def test_a_wrong_password_is_said_and_not_shown(house, posts):
    rabbit = house()
    rabbit.settings = rabbit.settings.model_copy(
        update={"urls": (rabbit.server.url.replace("turno:secret", "turno:hidden-word"),)}
    )
    post = posts(rabbit)
    eventually(lambda: "refuses the user or the password" in post.problems(), "it says so")
    assert "hidden-word" not in post.problems()


def test_no_server_at_all_is_said_with_its_address(house, posts):
    nobody = f"amqp://turno:hidden-word@127.0.0.1:{ports.free_port()}/"
    rabbit = house()
    rabbit.settings = rabbit.settings.model_copy(update={"urls": (nobody,)})
    post = posts(rabbit)
    address = nobody.split("@")[1].rstrip("/")
    eventually(lambda: f"{address}: Connection refused" in post.problems(), "it says so")
    assert "hidden-word" not in post.problems()


def test_a_server_that_takes_the_connection_and_never_answers_is_said_in_words(house, posts):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        rabbit = house()
        url = f"amqp://127.0.0.1:{mute.getsockname()[1]}/"
        rabbit.settings = rabbit.settings.model_copy(update={"urls": (url,), "connect_timeout": 0.5})
        post = posts(rabbit)
        eventually(lambda: "no answer in time" in post.problems(), "it says so")


def test_of_several_addresses_the_next_is_tried(house, posts):
    rabbit = house()
    nobody = f"amqp://127.0.0.1:{ports.free_port()}/"
    rabbit.settings = rabbit.settings.model_copy(update={"urls": (nobody, rabbit.server.url)})
    post = posts(rabbit)
    [job] = made(1)
    rabbit.announce(job)
    assert post.has(1) == [job.id]
    assert post.problems() == ""


def test_an_address_with_a_mistake_is_said(house, posts):
    rabbit = house()
    rabbit.settings = rabbit.settings.model_copy(update={"urls": (f"{rabbit.server.url}?hartbeat=1",)})
    post = posts(rabbit)
    eventually(lambda: "hartbeat" in post.problems(), "it says which")


def test_an_idle_connection_is_kept_by_its_heartbeat(house, posts):
    rabbit = house(heartbeat=1)
    post = posts(rabbit, {"default": 1})
    [job] = made(1)
    rabbit.announce(job)
    post.has(1)
    before = post.broker._link.connection
    time.sleep(4)  # the server closes a connection after two missed beats: nothing is what is tested
    assert post.broker._link.connection is before
    assert states([job]) == {"Processing"}


def test_the_tests_leave_a_server_alone_that_is_not_theirs():
    from tests.kit.rabbitmq_server import GivenServer

    given = GivenServer("amqp://127.0.0.1/")
    assert isinstance(given, RabbitServer)
    with pytest.raises(pytest.skip.Exception, match="not these tests' own"):
        given.stop()
