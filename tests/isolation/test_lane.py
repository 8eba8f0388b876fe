"""Jobs on their way to a child: each is had by one side, whole, whenever it is taken back."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator

import pytest

import tests.isolation.handlers  # noqa: F401
from tests.isolation.house import claim_of
from workers.isolation import frames
from workers.isolation.lane import PACKET, Inbox, Lane
from workers.isolation.wire import ConnectionGone

SMALL, LARGE = 100, 1024**2


class Way:
    """Both sides of a lane; the child's in this process too."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        entry, self.child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        copy = self.child_end.dup()
        self.lane = Lane(entry.detach(), copy.detach(), self.loop)
        self.inbox = Inbox(self.child_end)
        self._number = 0
        self.gone = False

    def frame(self, size: int) -> bytes:
        """Another job with a payload of so many bytes."""
        self._number += 1
        job = frames.Job(self._number, claim_of("iso.echo", {"text": "x" * size}), 1.0, "folder", last=False)
        return frames.pack_job(job)

    def received(self) -> int:
        """The number of the job that the child gets next."""
        job = self.inbox.receive()
        assert job is not None
        return job.number

    def some_time(self) -> None:
        """Let the lane send what it can."""
        for _ in range(3):
            self.loop.run_until_complete(asyncio.sleep(0))

    def close(self) -> None:
        if not self.gone:
            self.lane.close()
        self.child_end.close()
        self.loop.close()


@pytest.fixture
def way() -> Iterator[Way]:
    made = Way()
    yield made
    made.close()


def test_what_the_child_has_not_taken_comes_back_and_what_it_has_does_not(way):
    way.lane.send(way.frame(SMALL))
    assert [way.lane.send_ahead(way.frame(SMALL)) for _ in range(3)] == [True] * 3
    assert way.received() == 1
    assert way.received() == 2
    assert way.lane.take_back() == {3, 4}
    assert way.lane.take_back() == set()
    way.lane.send(way.frame(SMALL))
    assert way.received() == 5


def test_a_child_that_waits_sees_what_was_taken_back_never_and_the_end_at_once(way):
    found: list[int] = []

    def child() -> None:
        while job := way.inbox.receive():
            found.append(job.number)

    thread = threading.Thread(target=child)
    thread.start()
    taken_back: list[int] = []
    for _ in range(500):
        way.lane.send(way.frame(SMALL))
        ahead = way.lane.send_ahead(way.frame(SMALL))
        taken_back += way.lane.take_back()
        assert ahead
    way.lane.end()
    thread.join(60)
    assert not thread.is_alive()
    assert sorted(found + taken_back) == list(range(1, 1001))
    assert found == sorted(found)


def test_a_large_job_arrives_whole_and_alone(way):
    way.lane.send(way.frame(LARGE))
    assert not way.lane.send_ahead(way.frame(SMALL))
    assert way.lane.take_back() == set()
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(way.received()))
    thread.start()
    while thread.is_alive():
        way.some_time()
    assert found == [1]
    assert not way.lane.send_ahead(way.frame(SMALL))
    way.lane.send(way.frame(SMALL))
    assert way.lane.send_ahead(way.frame(SMALL))
    assert (way.received(), way.received()) == (4, 5)


def test_a_large_job_that_was_taken_in_part_by_a_child_that_died_was_not_begun(way):
    way.lane.send(way.frame(LARGE))
    way.child_end.recv(PACKET)
    way.some_time()
    assert way.lane.take_back(dead=True) == {1}
    way.lane.send(way.frame(3 * PACKET))
    for _ in range(4):
        way.child_end.recv(PACKET)
    assert way.lane.take_back(dead=True) == set()


def test_what_finds_no_room_is_not_sent_and_what_was_sent_comes_back_whole(way):
    way.lane.send(way.frame(SMALL))
    sent = 1
    while way.lane.send_ahead(way.frame(10_000)):
        sent += 1
    assert sent > 6  # more than a child is given
    assert way.lane.take_back() == {*range(1, sent + 1)}


def test_a_job_is_read_from_nothing_but_the_lane(way):
    other, theirs = socket.socketpair()
    with other, theirs:
        number = way.child_end.fileno()
        os.dup2(theirs.fileno(), number)
        other.send(way.frame(SMALL))
        with pytest.raises(ConnectionGone):
            way.inbox.receive()


def test_a_lane_whose_worker_is_gone_ends(way):
    way.lane.close()
    way.gone = True
    assert way.inbox.receive() is None


def test_a_time_limit_that_handlers_give_all_new_sockets_is_none_of_a_child_that_waits():
    """A socket with one is non-blocking for the system, and the child's end is one open file with the worker's copy."""
    before = socket.getdefaulttimeout()
    entry, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.setdefaulttimeout(0.01)
    try:
        made = Lane(entry.detach(), os.dup(child_end.fileno()), loop := asyncio.new_event_loop())
        assert os.get_blocking(child_end.fileno())
        other, late = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        Inbox(late)
        assert late.gettimeout() is None
    finally:
        socket.setdefaulttimeout(before)
    made.close()
    loop.close()
    for end in (child_end, other, late):
        end.close()
