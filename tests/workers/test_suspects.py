"""The consumer with suspects: what becomes of those that were claimed with them, and which slots get work."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from jobs.conf import conf
from jobs.registry import catalogue, job_type
from jobs.states import Reason
from jobs.transitions import Settled
from tests.isolation.house import claim_of
from workers import quarantine
from workers.breakers import Breakers
from workers.clock import boottime
from workers.consumer import Consumer
from workers.leases import LeaseBook
from workers.locks.base import NoLocks
from workers.slots import Slots
from workers.transports.base import Transport


class Brought(Transport):
    """Brings `batches` one after another; `offers`: how many slots each claim was offered."""

    def __init__(self, book):
        self.batches, self.offers, self.roomy = [], [], set()
        self._book = book

    async def take(self, offer):
        self.offers.append(len(offer))
        claims = self.batches.pop(0) if self.batches else []
        return self._book.enter(None, claims, boottime() + 600)

    def full(self, queue):
        self.roomy.discard(queue)

    def room(self, queue, free):
        self.roomy.add(queue)


class Ends:
    """A ledger that has written each end at once."""

    busy = hurries = False

    def __init__(self):
        self.written, self.breakers = {}, Breakers()

    def settle(self, ending, done, *, keyed=False):
        self.written[ending.id] = ending
        done(Settled(ending.dispatch_id, ending.to))


class Shift:
    """A consumer between a transport and a ledger that the test has in hand; `told` answers what `begin` says."""

    def __init__(self, told, slots=2):
        self.book, self.ends = LeaseBook(), Ends()
        self.transport = Brought(self.book)
        self.consumer = Consumer(
            self.transport,
            Slots({"default": slots}),
            self.book,
            self.ends,
            begin=told,
            locks=NoLocks(),
            forkserver=None,
            settings=conf().worker,
        )

    async def __aenter__(self):
        self.running = asyncio.create_task(self.consumer.run())
        return self

    async def __aexit__(self, *error):
        self.running.cancel()
        self.consumer.close(clean=True)
        self.consumer._runners.handlers._loop.close()

    async def until(self, probe):
        async with asyncio.timeout(20):
            while not probe():
                await asyncio.sleep(0.001)


@pytest.fixture
def types():
    """What has run of `suspects.async`; the handler of `suspects.thread` hears nothing until the test is over."""
    ran, go_on = [], threading.Event()
    with catalogue.scratch():

        @job_type("suspects.async")
        async def quick(ctx):
            ran.append(ctx.job_id)

        @job_type("suspects.thread", isolation="thread")
        def deaf(ctx):
            go_on.wait(60)

        yield ran
        go_on.set()


def suspect(type_, **fields):
    return claim_of(type_, {}, **({"lost_count": 2} | fields))


async def test_a_batch_of_which_the_database_says_nothing_is_given_back_when_the_worker_ends(types):
    shift = Shift(lambda held, begun: Future())
    shift.transport.batches.append([suspect("suspects.async", slot=1), claim_of("suspects.async", {}, slot=2)])
    async with shift:
        await shift.until(lambda: len(shift.book) == 2)
        shift.consumer.stop_taking()
        await asyncio.sleep(0)
        shift.running.cancel()
        await shift.until(lambda: not len(shift.book))
    assert [(e.reason, e.counted) for e in shift.ends.written.values()] == [(Reason.RELEASED, False)] * 2
    assert types == []


async def test_the_other_slots_get_work_again_when_a_suspect_does_not_hear_that_its_time_is_over(types, monkeypatch):
    monkeypatch.setattr(quarantine, "OVERRUN", 0.0)

    def told(held, begun):
        future = Future()
        future.set_result(frozenset(one.claim.dispatch_id for one in held))
        return future

    stuck, next_one = suspect("suspects.thread", slot=1, timeout=0.05), claim_of("suspects.async", {}, slot=2)
    shift = Shift(told)
    shift.transport.batches += [[stuck], [next_one]]
    async with shift:
        await shift.until(lambda: next_one.id in shift.ends.written)
        assert shift.transport.offers[:2] == [2, 1]
        assert stuck.id not in shift.ends.written
        # The slot of the next one is free a moment after its end is written.
        await shift.until(lambda: shift.transport.roomy == {"default"})
