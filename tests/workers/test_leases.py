"""The lease book and the word "stop"."""

import asyncio
from datetime import UTC, datetime

import pytest

from jobs.errors import JobTimeout, LeaseLost
from jobs.ids import new_id
from jobs.outcomes import Claim
from workers.leases import STOPPING, Held, Interrupt, LeaseBook
from workers.slots import Slots


def claim(**changes):
    fields = {
        "id": new_id(),
        "dispatch_id": new_id(),
        "type": "a",
        "queue": "default",
        "payload": {},
        "slot": 1,
        "execution": 1,
        "attempts_used": 0,
        "max_attempts": 5,
        "lost_count": 0,
        "timeout": None,
        "at_most_once": False,
        "claimed_at": datetime.now(UTC),
    }
    return Claim(**fields | changes)


@pytest.fixture
def book():
    return LeaseBook()


def held(book, deadline=100.0):
    claim_id = new_id()
    book.begin(claim_id, 1e12)
    return book.enter(claim_id, [claim()], deadline)[0]


def test_what_is_past_its_deadline_is_not_renewed_and_cannot_be_revived(book):
    h = held(book, deadline=10)
    assert book.renewable(9.9) == [h]
    assert book.renewable(10) == []
    assert book.overdue(10) == [h]
    book.extend([h.claim.dispatch_id], 99)
    assert h.deadline == 10
    assert book.renewable(5) == []
    assert len(book) == 1  # it is waited for until it ends


def test_a_handler_that_outlives_its_lease_is_late_only_after_it_had_time_to_stop(book):
    h = held(book, deadline=10)
    book.overdue(500)  # this process was frozen: it sees the deadline long afterwards
    assert book.late(500, patience=5) == []
    assert book.late(500 + STOPPING, patience=5) == [h]
    h.ended = True
    assert book.late(600, patience=5) == []


def test_a_claim_in_flight_and_a_held_job_are_no_strays(book):
    claim_id, token = new_id(), new_id()
    assert book.is_stray(token, claim_id)
    book.begin(claim_id, 1e12)
    assert not book.is_stray(token, claim_id)
    entered = book.enter(claim_id, [claim(dispatch_id=token)], 10)
    assert not book.is_stray(token, claim_id)
    book.overdue(10)
    assert not book.is_stray(token, claim_id)
    book.close(token)
    assert book.is_stray(token, claim_id)
    assert entered[0].claim.dispatch_id == token


def test_an_abandoned_claim_leaves_strays(book):
    claim_id = new_id()
    book.begin(claim_id, 1e12)
    book.abandon(claim_id)
    assert book.is_stray(new_id(), claim_id)


def test_a_way_to_stop_that_is_taken_away_while_it_is_looked_at_is_no_error(book):
    """The engine hands a job on to whoever runs it while the heartbeat asks it to stop."""
    said = []

    class HandedOn(Held):
        @property
        def stop(self):
            return ways.pop(0)

        @stop.setter
        def stop(self, way):
            return

    ways = [said.append, None]
    assert HandedOn(claim(), 10).ask(Interrupt.CANCELLED)
    assert said == [Interrupt.CANCELLED]


def test_the_first_reason_to_stop_stays_but_a_loss_overrides_it(book):
    h, said = held(book), []
    h.stop = said.append
    assert h.ask(Interrupt.TIMEOUT, 3)
    assert not h.ask(Interrupt.CANCELLED)
    assert h.interrupt is Interrupt.TIMEOUT
    assert isinstance(h.flag.error, JobTimeout)
    assert "3 s" in str(h.flag.error)
    assert h.ask(Interrupt.LOST)
    assert not h.ask(Interrupt.LOST)
    assert said == [Interrupt.TIMEOUT, Interrupt.LOST]


def test_a_lost_lease_tells_the_handler_so(book):
    h = held(book)
    h.ask(Interrupt.LOST)
    with pytest.raises(LeaseLost):
        h.flag.raise_if_set()


def test_a_handler_that_has_ended_is_asked_nothing_more(book):
    h = held(book)
    h.ended = True
    assert not h.ask(Interrupt.LOST)
    assert h.interrupt is None


async def test_slots_are_offered_queue_by_queue_in_turn_and_never_twice():
    slots = Slots({"a": 2, "b": 1})
    offer = slots.take(10)
    assert sorted(offer) == [("a", 1), ("a", 2), ("b", 1)]
    assert {queue for queue, _ in Slots({"a": 5, "b": 5}).take(2)} == {"a", "b"}
    assert slots.take(10) == []
    slots.give_back("a", 2)
    assert slots.changed.is_set()
    assert slots.take(10) == [("a", 2)]
    assert {queue for queue, _ in Slots({"a": 2, "b": 1, "c": 1}).take(1)} == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("free", "most", "shares"),
    [
        ({"a": 9}, 4, [4]),
        ({"a": 9, "b": 9}, 5, [2, 3]),
        ({"a": 1, "b": 9, "c": 9}, 9, [1, 4, 4]),
        ({"a": 2, "b": 3}, 9, [2, 3]),
        ({"a": 9, "b": 9, "c": 9}, 1, [1, 1, 1]),
    ],
)
async def test_slots_are_shared_among_queues_as_if_each_took_one_in_turn(free, most, shares):
    slots = Slots(free)
    offer = slots.take(most)
    assert sorted(sum(queue == name for queue, _ in offer) for name in free) == shares
    assert len(set(offer)) == len(offer)
    assert {name: slots.free(name) + sum(queue == name for queue, _ in offer) for name in free} == free


async def test_a_queue_with_fewer_slots_starts_nothing_until_fewer_run_than_it_has():
    slots, told = Slots({"a": 3, "b": 1}), []
    slots.follow(asyncio.get_running_loop(), told.append)
    assert [number for _, number in slots.take(3) if _ == "a"] == [1, 2]
    slots.ask({"a": 1, "b": 1})
    await asyncio.sleep(0)
    assert (told, slots.queues, slots.free("a")) == (["a"], {"a": 1, "b": 1}, 0)
    slots.give_back("a", 1)
    assert slots.take(9) == []  # the second one still runs
    slots.give_back("a", 2)
    assert slots.take(9) == [("a", 1)]
    slots.ask({"a": 0, "b": 1})
    await asyncio.sleep(0)
    slots.give_back("a", 1)
    assert slots.take(9) == []


async def test_a_queue_with_more_slots_offers_each_number_once():
    slots, told = Slots({"a": 2}), []
    slots.follow(asyncio.get_running_loop(), told.append)
    assert slots.take(9) == [("a", 1), ("a", 2)]
    slots.ask({"a": 1})
    slots.ask({"a": 4})
    slots.ask({"a": 4})
    await asyncio.sleep(0)
    assert told == ["a"]
    assert slots.changed.is_set()
    assert slots.take(9) == [("a", 3), ("a", 4)]
    slots.give_back("a", 2)
    assert slots.take(9) == [("a", 2)]
