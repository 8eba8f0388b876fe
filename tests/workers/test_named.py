"""What becomes of each delivery: acknowledged, given back or put aside, one of them, whatever the claim comes to."""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.db import DataError, InternalError, OperationalError

from workers.leases import Named
from workers.locks.base import JobLocks, LocksAway, NoLocks, Taken
from workers.transports.messages import Dispatch
from workers.transports.named import Delivery, NamedClaims


class Delivered(Delivery):
    """Notes what is said of it."""

    def __init__(self, dispatch=None):
        self.dispatch = dispatch or Dispatch(uuid4(), uuid4(), "default")
        self.said = []

    def ack(self):
        self.said.append("ack")

    def give_back(self):
        self.said.append("back")

    def reject(self, reason):
        self.said.append(f"reject: {reason}")


class Claims:
    """A ledger that answers as it is told: `errors` come first, one an answer; of the jobs `bad` no claim can be."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.bad = set()
        self.waiting = set()
        self.gone = set()
        self.batches = []
        self.deferred = []

    def claim_named(self, wanted):
        self.batches.append(len(wanted))
        error = self.errors.pop(0) if self.errors else None
        if error is None and {one.job for one in wanted} & self.bad:
            error = DataError("a bad row")
        held = [_held(one.token) for one in wanted if one.token not in self.waiting | self.gone]
        return _done(Named(held, frozenset(one.token for one in wanted) & frozenset(self.waiting)), error)

    def defer(self, pairs):
        self.deferred += pairs
        return _done(None, self.errors.pop(0) if self.errors else None)

    def paused(self, queues):
        return _done({"default"}, self.errors.pop(0) if self.errors else None)


class Locks(NoLocks):
    """Every lock is free but those of `busy`; `released` are those given back."""

    def __init__(self, *busy):
        self.busy = frozenset(busy)
        self.released = []

    async def acquire(self, pairs):
        tokens = frozenset(token for _, token in pairs)
        return Taken(tokens - self.busy, tokens & self.busy)

    def release(self, pairs):
        self.released += pairs


class NoQuorum(JobLocks):
    """No quorum."""

    async def acquire(self, pairs):
        raise LocksAway("two of three are away")

    def release(self, pairs):
        raise AssertionError("none was taken")


def _held(token):
    return SimpleNamespace(claim=SimpleNamespace(dispatch_id=token))


def _done(answer, error):
    future = Future()
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
    return future


def seats(*deliveries):
    return [(delivery, slot) for slot, delivery in enumerate(deliveries, 1)]


def pair(delivery):
    return delivery.dispatch.job, delivery.dispatch.token


def some(count):
    return [Delivered() for _ in range(count)]


async def test_what_is_claimed_and_what_names_nothing_is_acknowledged_and_what_waits_goes_back():
    claims, locks = Claims(), Locks()
    started, gone, waits = deliveries = some(3)
    claims.gone, claims.waiting = {gone.dispatch.token}, {waits.dispatch.token}
    named = NamedClaims(claims, locks)
    assert not named.allows("other")  # what is paused is not known yet
    held = await named.claim(seats(*deliveries))
    assert [one.claim.dispatch_id for one in held] == [started.dispatch.token]
    assert [delivery.said for delivery in deliveries] == [["ack"], ["ack"], ["back"]]
    assert (named.allows("default"), named.allows("other")) == (False, True)
    assert sorted(locks.released) == sorted([pair(gone), pair(waits)])


async def test_a_message_that_comes_twice_at_once_is_claimed_once_and_both_are_acknowledged():
    claims = Claims()
    first = Delivered()
    again = Delivered(first.dispatch)
    await NamedClaims(claims, Locks()).claim(seats(first, again))
    assert (claims.batches, first.said, again.said) == ([1], ["ack"], ["ack"])


@pytest.mark.parametrize("error", [OperationalError("away"), InternalError("read only")])
async def test_without_a_database_everything_goes_back_and_it_is_not_ready_until_a_look_is_answered(error):
    claims, locks = Claims(error), Locks()
    named = NamedClaims(claims, locks)
    deliveries = some(3)
    with pytest.raises(type(error)):
        await named.claim(seats(*deliveries))
    assert [delivery.said for delivery in deliveries] == [["back"]] * 3
    assert not named.ready
    assert len(locks.released) == 3
    claims.errors = [OperationalError("still")]
    await named.look(["default"])
    assert not named.ready
    await named.look(["default"])
    assert named.ready
    assert (named.allows("default"), named.allows("other")) == (False, True)


async def test_an_error_that_nobody_foresaw_gives_everything_back_and_makes_a_pause():
    named = NamedClaims(Claims(ZeroDivisionError("oops")), Locks())
    [delivery] = some(1)
    held = await named.claim(seats(delivery))
    assert (held, delivery.said, named.ready) == ([], ["back"], False)
    assert "oops" in named.problems()[0]["error"]
    async with asyncio.timeout(5):
        while not named.ready:
            await asyncio.sleep(0.02)
    [other] = some(1)
    await named.claim(seats(other))
    assert (other.said, named.problems()) == (["ack"], [])


async def test_a_job_that_can_not_be_claimed_is_put_aside_and_the_others_start():
    claims, locks = Claims(), Locks()
    deliveries = some(8)
    bad = deliveries[5]
    claims.bad = {bad.dispatch.job}
    held = await NamedClaims(claims, locks).claim(seats(*deliveries))
    assert len(held) == 7
    assert bad.said == ["reject: the job can't be claimed: a bad row"]
    assert all(delivery.said == ["ack"] for delivery in deliveries if delivery is not bad)
    assert locks.released == [pair(bad)]


async def test_a_database_that_goes_away_in_the_middle_of_that_loses_nothing():
    claims = Claims(DataError("a bad row"), None, OperationalError("away"))
    deliveries = some(4)
    named = NamedClaims(claims, Locks())
    held = await named.claim(seats(*deliveries))
    assert len(held) == 2
    assert [delivery.said for delivery in deliveries] == [["ack"], ["ack"], ["back"], ["back"]]
    assert not named.ready


async def test_who_is_locked_elsewhere_is_put_off_and_acknowledged_and_the_others_start():
    free, busy = some(2)
    claims = Claims()
    held = await NamedClaims(claims, Locks(busy.dispatch.token)).claim(seats(free, busy))
    assert [one.claim.dispatch_id for one in held] == [free.dispatch.token]
    assert (claims.deferred, free.said, busy.said) == ([pair(busy)], ["ack"], ["ack"])


@pytest.mark.parametrize("error", [OperationalError("away"), ZeroDivisionError("oops")])
async def test_what_can_not_be_put_off_goes_back_and_what_was_claimed_runs(error):
    free, busy = some(2)
    named = NamedClaims(Claims(None, error), Locks(busy.dispatch.token))
    held = await named.claim(seats(free, busy))
    assert len(held) == 1
    assert (free.said, busy.said, named.ready) == (["ack"], ["back"], False)


async def test_without_a_quorum_of_locks_everything_goes_back_and_people_are_told():
    claims = Claims()
    named = NamedClaims(claims, NoQuorum())
    deliveries = some(2)
    held = await named.claim(seats(*deliveries))
    assert (held, claims.batches, named.ready) == ([], [], False)
    assert [delivery.said for delivery in deliveries] == [["back"]] * 2
    assert "two of three are away" in named.problems()[0]["error"]


async def test_who_stops_waiting_for_a_claim_gives_everything_back():
    claims, locks = Claims(), Locks()
    claims.claim_named = lambda wanted: Future()  # no answer ever comes
    [delivery] = some(1)
    task = asyncio.ensure_future(NamedClaims(claims, locks).claim(seats(delivery)))
    await asyncio.sleep(0.02)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert (delivery.said, locks.released) == (["back"], [pair(delivery)])


async def test_nothing_is_asked_about_nothing():
    claims = Claims()
    held = await NamedClaims(claims, Locks()).claim([])
    assert (held, claims.batches) == ([], [])
