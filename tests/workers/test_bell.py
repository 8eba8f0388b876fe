"""Many workers hear of one job: who is idle and was quickest looks at once, the others look a moment later."""

import asyncio
from concurrent.futures import Future

import pytest

from tests.isolation.house import claim_of
from tests.workers.test_suspects import Shift, types
from workers import bell
from workers.bell import Bell
from workers.consumer import FEW

__all__ = ["types"]
LONG = 3600.0


class House:
    """A bell whose moments end when the test says so."""

    def __init__(self, monkeypatch):
        self.runs, self.moments = False, []
        self.bell = Bell(LONG, lambda: self.runs)
        monkeypatch.setattr(self.bell, "_call_later", self._later)

    def _later(self, after, call):
        self.moments.append((after, call))
        return call

    async def looks(self, *, found):
        """It rings, and the look finds something or not."""
        await asyncio.wait_for(self.bell.wait(), 20)
        self.bell.look()
        self.bell.looked(found=found)

    def rings(self):
        return self.bell._rung.is_set()


@pytest.fixture
async def house(monkeypatch):
    return House(monkeypatch)


async def test_who_is_idle_looks_at_once(house):
    house.bell.hear()
    assert house.rings()
    assert not house.moments


async def test_who_runs_something_looks_a_moment_later_once_for_all_that_it_hears(house):
    house.runs = True
    house.bell.hear()
    house.bell.hear()
    assert not house.rings()
    [(after, call)] = house.moments
    assert after == bell.BUSY
    call()
    assert house.rings()
    house.bell.look()
    house.bell.hear()
    assert len(house.moments) == 2


async def test_who_came_too_late_gives_way_until_it_finds_something(house):
    house.bell.hear()
    await house.looks(found=False)
    for found in (False, True):
        house.bell.hear()
        assert not house.rings()
        after, call = house.moments.pop()
        assert after == bell.LATE > bell.BUSY
        call()
        await house.looks(found=found)
    house.bell.hear()
    assert house.rings()


async def test_a_poll_that_finds_nothing_says_nothing_of_others(house):
    house.bell.look()
    house.bell.looked(found=False)  # after a poll's time
    house.bell.hear()
    assert house.rings()


async def test_what_is_this_workers_own_waits_for_nobody(house):
    house.runs = True
    house.bell.ring()
    assert house.rings()


async def test_a_poll_looks_although_nobody_has_rung():
    found = Bell(0.001, lambda: False)
    await asyncio.wait_for(found.wait(), 20)
    assert not found._rung.is_set()


@pytest.mark.parametrize("brings_all", [True, False])
async def test_a_claim_that_brought_less_than_there_was_room_for_is_followed_by_another_only_where_more_may_wait(
    types, brings_all
):
    shift = Shift(lambda held, begun: Future())
    shift.transport.brings_all = brings_all
    shift.consumer._bell = Bell(LONG, lambda: False)
    shift.ends.settle = lambda *_arguments, **_how: None  # the slot stays taken
    shift.transport.batches.append([claim_of("suspects.async", {})])
    async with shift:
        await shift.until(lambda: types)
        if brings_all:
            await shift.until(lambda: shift.consumer._bell._rung._waiters)
            assert shift.transport.offers == [2]
            shift.consumer.hear()
        await shift.until(lambda: shift.transport.offers == [2, 1])


async def test_a_claim_whose_slots_are_all_used_is_followed_by_another(types):
    shift = Shift(lambda held, begun: Future())
    shift.transport.brings_all = True
    shift.consumer._bell = Bell(LONG, lambda: False)
    shift.transport.batches += [[claim_of("suspects.async", {}, slot=slot) for slot in (1, 2)] for _ in range(2)]
    async with shift:
        await shift.until(lambda: len(types) == 4)


async def test_few_slots_are_offered_until_jobs_are_known_to_wait(types):
    """As many as came the last time, twice, and all after a claim whose slots were all used."""
    shift = Shift(lambda held, begun: Future(), slots=100)
    shift.transport.brings_all = True
    shift.consumer._bell = Bell(0.001, lambda: False)
    shift.ends.settle = lambda *_arguments, **_how: None  # the slots stay taken
    jobs = [claim_of("suspects.async", {}, slot=slot) for slot in range(1, 61)]
    shift.transport.batches += [jobs[:FEW], jobs[FEW : FEW + 20], jobs[FEW + 20 : FEW + 21]]
    async with shift:
        await shift.until(lambda: len(shift.transport.offers) > 4)
    assert shift.transport.offers[:5] == [FEW, 100 - FEW, 40, FEW, FEW]
