"""What comes in a stream is written and claimed in large batches; what comes alone waits for nobody."""

import asyncio
from queue import SimpleQueue
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from workers import groupcommit
from workers.gathering import Gathering
from workers.groupcommit import Ledger

LONG = 60.0  # no test waits as long


class Written(Ledger):
    """Keeps what is written to it; a write goes on when it is `let`."""

    def __init__(self, gather: float) -> None:
        super().__init__("turno-written", 100, 1.0, gather=gather)
        self.batches: SimpleQueue[list[Any]] = SimpleQueue()
        self.let = Event()
        self.let.set()

    def write(self, batch: list[Any]) -> None:
        self.batches.put(batch)
        assert self.let.wait(LONG)


@pytest.fixture
def naps(monkeypatch):
    """The naps of ledgers, in seconds; during each one, `during` is called."""
    found: list[float] = []
    clock = SimpleNamespace(sleep=lambda seconds: (found.append(seconds), naps.during()))
    monkeypatch.setattr(groupcommit, "time", clock)
    monkeypatch.setattr(groupcommit, "STREAM", LONG)  # however slow the machine is

    def naps():
        return found

    naps.during = lambda: None
    return naps


@pytest.fixture
def ledger(request, naps):
    made = Written(gather=getattr(request, "param", 0.005))
    made.start()
    yield made
    made.let.set()
    assert made.close(LONG)


def together(ledger, *items):
    """Have these written in one batch: they come while another is being written."""
    ledger.let.clear()
    ledger.put("first")
    assert ledger.batches.get(timeout=LONG) == ["first"]
    for item in items:
        ledger.put(item)
    ledger.let.set()
    assert ledger.batches.get(timeout=LONG) == list(items)


def test_what_comes_alone_is_written_at_once(ledger, naps):
    for n in range(3):
        ledger.put(n)
        assert ledger.batches.get(timeout=LONG) == [n]

    assert naps() == []


def test_in_a_stream_the_next_batch_waits_for_more_for_half_the_time_that_one_takes(ledger, naps):
    together(ledger, 1, 2, 3)
    naps.during = lambda: ledger.put(5)
    ledger.put(4)

    assert ledger.batches.get(timeout=LONG) == [4, 5]
    assert len(naps()) == 1
    assert 0 < naps()[0] <= 0.005


def test_what_is_in_a_hurry_waits_for_nobody_and_what_comes_beside_it_neither(ledger, naps):
    together(ledger, 1, 2, 3)
    ledger.hurry()
    for n in (4, 5):
        ledger.put(n)
        assert ledger.batches.get(timeout=LONG) == [n]

    assert naps() == []


@pytest.mark.parametrize("ledger", [0.0], indirect=True)
def test_a_ledger_that_gathers_nothing_never_waits(ledger, naps):
    together(ledger, 1, 2, 3)
    ledger.put(4)

    assert ledger.batches.get(timeout=LONG) == [4]
    assert not any(naps())


def test_after_a_rest_a_stream_is_over(ledger, naps, monkeypatch):
    together(ledger, 1, 2, 3)
    monkeypatch.setattr(groupcommit, "STREAM", -1.0)
    ledger.put(4)

    assert ledger.batches.get(timeout=LONG) == [4]
    assert naps() == []


async def claimed(gathering, seconds):
    """A claim that takes so long, by the loop's clock."""
    clock = asyncio.get_running_loop().time()
    gathering._clock = iter([clock, clock + seconds]).__next__
    await gathering.timed(asyncio.sleep(0))
    gathering._clock = asyncio.get_running_loop().time


def test_free_slots_wait_for_those_that_are_coming():
    async def story():
        freed, coming, said = asyncio.Event(), [True], []
        gathering = Gathering(freed, lambda: bool(coming))
        await claimed(gathering, LONG)
        gathering._longest = LONG

        async def wait():
            await gathering.slots()
            said.append("all")

        waiting = asyncio.create_task(wait())
        for _ in range(3):
            await asyncio.sleep(0)
            freed.set()  # one is free, and more are to come
            await asyncio.sleep(0)
        assert not said
        coming.clear()
        freed.set()
        await asyncio.wait_for(waiting, LONG)
        assert said == ["all"]

    asyncio.run(story())


@pytest.mark.parametrize(("took", "coming"), [(0.0, True), (LONG, False)], ids=["no claim took long", "none is coming"])
def test_free_slots_wait_for_nothing(took, coming):
    async def story():
        gathering = Gathering(asyncio.Event(), lambda: coming)
        await claimed(gathering, took)
        gathering._longest = LONG
        await asyncio.wait_for(gathering.others(), LONG / 2)

    asyncio.run(story())


def test_they_wait_no_longer_than_the_claim_before_took():
    async def story():
        gathering = Gathering(asyncio.Event(), lambda: True)
        await claimed(gathering, 0.001)
        await asyncio.wait_for(gathering.others(), LONG / 2)

    asyncio.run(story())
