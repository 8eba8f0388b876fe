"""A delivery as it stands on the wire is read in one go, and just as the client library reads it frame by frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import BasicProperties, frame, spec

from workers.transports.framing import PART, SMALL, delivery

MOST_IN_A_FRAME = 131_064


def wire(body=b"{}", tag=7, *, consumer="turno-1", channel=3, redelivered=False, properties=None, between=b""):
    """The frames of a delivery; `between` stands before the one of the body."""
    method = spec.Basic.Deliver(consumer, tag, redelivered, "", "turno-default")
    header = frame.Header(channel, len(body), properties or BasicProperties(priority=10, content_type="text/plain"))
    bodies = [body[n : n + MOST_IN_A_FRAME] for n in range(0, len(body), MOST_IN_A_FRAME)]
    pieces = [frame.Body(channel, piece).marshal() for piece in bodies]
    return b"".join([frame.Method(channel, method).marshal(), header.marshal(), between, *pieces])


def by_the_library(data):
    """The same, read frame by frame."""
    used, method = frame.decode_frame(data)
    more, header = frame.decode_frame(data[used:])
    body = frame.decode_frame(data[used + more :])[1].fragment if header.body_size else b""
    said = method.method
    return method.channel_number, said.consumer_tag, said.delivery_tag, said.redelivered, header.properties, body


@given(
    st.binary(max_size=300),
    st.integers(1, 2**64 - 1),
    st.tuples(st.from_regex(r"\A[a-z0-9-]{0,40}\Z"), st.integers(1, 2047)),
    st.booleans(),
    st.builds(BasicProperties, priority=st.none() | st.integers(0, 255), message_id=st.none() | st.just("m" * 36)),
)
def test_it_says_what_the_library_says(body, tag, to, redelivered, properties):
    consumer, channel = to
    data = wire(body, tag, consumer=consumer, channel=channel, redelivered=redelivered, properties=properties)
    found = delivery(b"before" + data + b"after", 6)
    read = BasicProperties().decode(found.properties)
    said = (found.channel, found.consumer, found.tag, found.redelivered, read, found.body)
    assert said == by_the_library(data)
    assert found.end == 6 + len(data)


def test_of_a_small_one_that_is_not_all_here_the_rest_is_waited_for():
    data = wire(b"x" * 100)
    cut = {n: delivery(data[:n], 0) for n in range(len(data))}
    assert {n for n, found in cut.items() if found is None} == set(range(11)), "until it is known what it is"
    assert all(found is PART for n, found in cut.items() if n >= 11)


def test_a_large_one_is_read_when_it_is_all_here_and_left_to_the_library_before():
    data = wire(b"x" * 2 * SMALL)
    assert delivery(data, 0).body == b"x" * 2 * SMALL
    assert delivery(data[:-1], 0) is None
    assert delivery(data[:100], 0) is PART


def test_one_whose_body_comes_in_two_frames_is_left_to_the_library():
    assert delivery(wire(b"x" * (MOST_IN_A_FRAME + 1)), 0) is None


OPENED = frame.Method(4, spec.Channel.OpenOk()).marshal()
OTHERS = {
    "nothing": b"",
    "a heartbeat": frame.Heartbeat().marshal(),
    "an answer": frame.Method(3, spec.Basic.QosOk()).marshal(),
    "an answer to another channel in between": wire(between=OPENED),
    "another channel's body": wire(b"")[:-8] + wire(b"{}", channel=9)[-10:],
    "no end": wire()[:-1] + b"\x00",
    "a returned message": frame.Method(3, spec.Basic.Return(312, "NO_ROUTE", "", "x")).marshal() + wire()[70:],
}


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_anything_else_is_left_to_the_library(data):
    assert delivery(data, 0) is None
