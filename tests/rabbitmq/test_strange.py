"""Messages that nobody foresaw: properties that the library can't read, and rubbish that no queue takes."""

import json
import struct

import pytest
from pika import BasicProperties

from tests.contract.test_bringing import made, pause
from tests.kit.processes import eventually
from tests.rabbitmq.test_queues import consumers
from tests.rabbitmq.test_server import MEMORY
from tests.transitions import COMMITTED
from tests.transitions.rows import execute
from workers.transports import rabbitmq as transport
from workers.transports.messages import Dispatch

pytestmark = [COMMITTED]
MILLISECONDS = b"T" + struct.pack(">Q", 1_700_000_000_000)  # as an instant in seconds it is the year 55840
HEADERS = {
    "milliseconds": MILLISECONDS,
    "the last instant": b"T" + struct.pack(">Q", 2**64 - 1),
    "within a list": b"A" + struct.pack(">I", len(MILLISECONDS)) + MILLISECONDS,
    "within a table": b"F" + struct.pack(">I", 2 + len(MILLISECONDS)) + b"\x01h" + MILLISECONDS,
    "no UTF-8": b"S" + struct.pack(">I", 2) + b"\xff\xfe",
}

FIRST = BasicProperties(priority=255)  # it comes before any job


class Strange(BasicProperties):
    """Properties of one header, or of a content type, as they stand on the wire."""

    def __init__(self, header: bytes = b"", content_type: bytes = b"") -> None:
        super().__init__()
        self._header, self._content_type = header, content_type

    def encode(self) -> list[bytes]:
        if self._content_type:
            flags = struct.pack(">H", self.FLAG_CONTENT_TYPE)
            return [flags, bytes([len(self._content_type)]), self._content_type]
        table = b"\x02at" + self._header
        return [struct.pack(">H", self.FLAG_HEADERS), struct.pack(">I", len(table)), table]


def put(rabbit, body, properties=None):
    with rabbit.raw() as channel:
        channel.confirm_delivery()
        channel.basic_publish("", f"{rabbit.prefix}-default", body, properties, mandatory=True)


def ready(rabbit, posts, **slots):
    """A post that is connected, and whose queues are there."""
    post = posts(rabbit, {"default": 2, "critical": 1} | slots)
    [first] = made(1, queue="critical")
    rabbit.announce(first)
    post.has(1)
    post.finish()
    eventually(lambda: not post.held, "it has ended")
    return post


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_properties_that_can_not_be_read_cost_no_connection(rabbit, posts, header):
    post = ready(rabbit, posts)
    before = post.broker._link.connection
    named, other = made(2)
    put(rabbit, Dispatch(named.id, named.token, "default").body(), Strange(header))
    put(rabbit, b"rubbish", Strange(header))
    rabbit.announce(other)
    assert set(post.has(2)) == {named.id, other.id}
    post.finish(2)
    aside = []
    eventually(lambda: aside.extend(rabbit.poisoned("default")) or aside, "it is put aside")
    assert [body for body, _why in aside] == [b"rubbish"]
    assert post.broker._link.connection is before


@pytest.mark.parametrize(
    "properties",
    [
        Strange(content_type=b"\xff\xfe"),
        BasicProperties(priority=255, timestamp=2**63, content_type="x" * 255),
        BasicProperties(delivery_mode=1, reply_to="nowhere", headers={"x-death": [{"count": 1}], "n": None}),
    ],
    ids=["no UTF-8", "largest values", "others"],
)
def test_whatever_rubbish_comes_with_it_is_put_aside(rabbit, posts, properties):
    post = ready(rabbit, posts)
    put(rabbit, b"rubbish", properties)
    aside = []
    eventually(lambda: aside.extend(rabbit.poisoned("default")) or aside, "it is put aside")
    [job] = made(1)
    put(rabbit, json.dumps({"v": 1, "job": str(job.id), "token": str(job.token)}).encode(), properties)
    assert post.has(1) == [job.id]


def test_of_a_huge_body_the_beginning_is_put_aside_with_its_length(rabbit, posts):
    post = ready(rabbit, posts)
    put(rabbit, b"x" * (transport.KEPT + 5_000_000))
    eventually(lambda: post.broker.poisoned == 1, "it is put aside")
    with rabbit.raw() as channel:
        _method, properties, body = channel.basic_get(f"{rabbit.prefix}-default_error", auto_ack=True)
    assert body == b"x" * transport.KEPT
    assert properties.headers["x-turno-bytes"] == transport.KEPT + 5_000_000


@pytest.fixture
def quickly(monkeypatch):
    """What can't be put aside is dropped soon."""
    monkeypatch.setattr(transport, "TRY_AGAIN", 0.05)
    monkeypatch.setattr(transport, "TRIES", 3)


@pytest.mark.usefixtures("quickly")
def test_rubbish_that_no_queue_takes_is_dropped_and_stands_in_nobodys_way(rabbit, posts):
    with rabbit.raw() as channel:  # as somebody has declared it before, and filled it
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        channel.queue_declare(f"{rabbit.prefix}-default_error", durable=True, arguments=full)
        channel.basic_publish("", f"{rabbit.prefix}-default_error", b"x")
    post = ready(rabbit, posts)
    for n in range(12):
        put(rabbit, b"rubbish %d" % n, FIRST)
    [job] = made(1)
    rabbit.announce(job)
    assert post.has(1) == [job.id]
    assert f"Messages of {rabbit.prefix}-default that could not be processed were dropped" in post.problems()
    assert "the broker refused the message" in post.problems()


@pytest.mark.usefixtures("quickly")
def test_rubbish_does_not_stop_the_work_of_a_broker_that_is_short_of_memory(rabbit, posts):
    """Nothing can be put aside then, since nothing can be published; and what waits for that holds the memory."""
    post = ready(rabbit, posts)
    pause("default")
    eventually(lambda: consumers(rabbit) == 0, "nobody consumes")
    for n in range(6):
        put(rabbit, b"rubbish %d" % n, FIRST)
    jobs = made(2)
    rabbit.announce(*jobs)
    rabbit.server.ctl(*MEMORY, "1")
    try:
        execute("DELETE FROM turno.pauses")
        assert set(post.has(2, 60)) == {job.id for job in jobs}
        assert "were dropped" in post.problems()
    finally:
        rabbit.server.ctl(*MEMORY, "512MB")
