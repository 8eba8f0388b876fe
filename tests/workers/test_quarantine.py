"""Suspects: one at a time, alone; who waits is not begun, can be stopped, and does not wait for ever."""

import asyncio
from concurrent.futures import Future
from uuid import uuid4

import pytest
from django.db import OperationalError

from jobs.conf import overridden
from jobs.outcomes import Claim
from jobs.states import Outcome, Reason, State
from workers import quarantine
from workers.clock import boottime
from workers.execution import prepare
from workers.leases import Held, Interrupt
from workers.quarantine import Quarantine, is_suspect, patience


def held(lost_count=2, **columns):
    fixed = {"payload": {}, "slot": 1, "execution": 3, "attempts_used": 2, "max_attempts": 5, "timeout": None}
    own = {"type": "t", "queue": "q", "at_most_once": False, "claimed_at": None, "lost_count": lost_count}
    return Held(Claim(uuid4(), uuid4(), **(fixed | own | columns)), boottime() + 60)


SILENCE = object()  # an answer that never comes


class House:
    """A worker of which only the quarantine is real. `told`: what the database heard, by the names of the jobs."""

    def __init__(self):
        self.others = 0
        self.told = []
        self.answers = []  # what the database says next, instead of yes
        self.started = []
        self.ended = {}
        self.let_go = []
        self.quarantine = Quarantine(
            others=lambda: self.others, begin=self.begin, start=self.start, end=self.end, let_go=self.let_go.append
        )

    def begin(self, helds, begun):
        future = Future()
        answer = self.answers.pop(0) if self.answers else frozenset(h.claim.dispatch_id for h in helds)
        if answer is SILENCE:
            return future
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            self.told += [(h, begun) for h in helds]
            future.set_result(answer)
        return future

    def start(self, execution):
        self.started.append(execution.held)

    def end(self, one, ending):
        one.ended = True
        self.ended[one] = ending

    async def add(self, *helds):
        await self.quarantine.add([prepare(one, lambda ctx: None) for one in helds])

    def free(self, one=None):
        """An execution has ended: a suspect, or, of the others, any."""
        self.others -= one is None
        self.quarantine.freed(one or held(0))

    async def until(self, probe):
        async with asyncio.timeout(20):
            while not probe():
                await asyncio.sleep(0.001)

    async def rest(self):
        """Whatever can happen now has happened."""
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def house():
    return House()


def test_a_suspect_is_what_was_lost_twice():
    assert [is_suspect(held(lost_count=n)) for n in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(("limit", "first"), [(1, 1), (2, 1), (3, 2), (100, 2)])
def test_whom_the_next_loss_would_condemn_is_one_too(limit, first):
    with overridden(resilience={"lost_limit": limit}):
        assert [is_suspect(held(lost_count=n)) for n in range(4)] == [n >= first for n in range(4)]


async def test_where_nothing_else_runs_it_starts_at_once(house):
    await house.add(one := held())
    await house.until(lambda: house.started)
    assert (house.started, house.told, len(house.quarantine)) == ([one], [], 1)
    house.free(one)
    assert len(house.quarantine) == 0


async def test_it_waits_for_all_others_and_has_not_begun_meanwhile(house):
    house.others = 2
    await house.add(one := held())
    await house.until(lambda: house.told == [(one, False)])
    house.free()
    await house.rest()
    assert not house.started
    house.free()
    await house.until(lambda: house.started)
    assert house.told == [(one, False), (one, True)]


async def test_of_several_each_runs_alone_one_after_the_other(house):
    suspects = [held() for _ in range(3)]
    await house.add(*suspects)
    for n, one in enumerate(suspects, 1):
        await house.until(lambda n=n: len(house.started) == n)
        await house.rest()
        assert house.started == suspects[:n]
        house.free(one)
    assert len(house.quarantine) == 0
    for one in suspects[1:]:
        assert [begun for said, begun in house.told if said is one] == [False, True]


@pytest.mark.parametrize(
    ("why", "outcome", "to"),
    [
        (Interrupt.CANCELLED, Outcome.CANCELLED, State.CANCELLED),
        (Interrupt.SHUTDOWN, Outcome.INTERRUPTED, State.ENQUEUED),
        (Interrupt.LOST, Outcome.INTERRUPTED, State.ENQUEUED),
    ],
)
async def test_one_that_waits_is_asked_to_stop_and_was_never_started(house, why, outcome, to):
    house.others = 1
    await house.add(one := held())
    await house.rest()
    one.ask(why)
    await house.until(lambda: house.ended)
    ending = house.ended[one]
    assert (ending.outcome, ending.to, house.started) == (outcome, to, [])
    assert ending.counted is (why is Interrupt.CANCELLED)


async def test_one_that_was_asked_before_it_came_is_not_started(house):
    one = held()
    one.ask(Interrupt.CANCELLED)
    await house.add(one)
    await house.until(lambda: house.ended)
    assert (house.ended[one].to, house.started) == (State.CANCELLED, [])


async def test_at_the_end_of_the_worker_who_waits_is_given_back_and_who_runs_is_not_asked(house):
    runs, waits, late = held(), held(), held()
    await house.add(runs, waits)
    await house.until(lambda: house.started == [runs] and (waits, False) in house.told)
    house.quarantine.close()
    await house.add(late)  # of a claim that was under way
    await house.until(lambda: len(house.ended) == 2)
    assert {ending.reason for ending in house.ended.values()} == {Reason.RELEASED}
    assert (runs.interrupt, runs in house.ended) == (None, False)


async def test_a_stop_of_one_that_runs_is_its_runners_and_not_the_quarantines(house):
    await house.add(one := held())
    await house.until(lambda: house.started)
    one.ask(Interrupt.CANCELLED)
    await house.rest()
    assert not house.ended


async def test_who_waits_for_too_long_is_put_off_uncharged(house, monkeypatch):
    monkeypatch.setattr(quarantine, "PATIENCE", 0.01)
    house.others = 1
    await house.add(one := held())
    await house.until(lambda: house.ended)
    ending = house.ended[one]
    assert (ending.to, ending.reason, ending.outcome) == (State.SCHEDULED, Reason.NOT_ALONE, Outcome.INTERRUPTED)
    assert (ending.counted, ending.lost, ending.delay > 0, house.started) == (False, False, True, [])


def test_the_patience_grows_with_each_wait_in_vain_and_has_an_end():
    waits = [patience(held(execution=3 + vain).claim) for vain in range(20)]
    assert waits[:3] == [60.0, 120.0, 240.0]
    assert waits == sorted(waits)
    assert waits[-1] < 2 * 3600


async def test_it_does_not_begin_before_the_database_knows_it(house):
    house.others = 1
    await house.add(one := held())
    await house.until(lambda: house.told)
    house.answers = [OperationalError("away")]
    house.free()
    await house.rest()
    assert not house.started
    await house.until(lambda: house.started)
    assert house.told[-1] == (one, True)


async def test_what_was_claimed_with_it_does_not_start_before_the_database_knows_who_waits(house):
    house.others = 1
    one, other = held(), held()
    await house.add(one, other)
    assert house.told == [(one, False), (other, False)]


async def test_while_the_database_is_away_nothing_of_the_batch_may_start(house, monkeypatch):
    monkeypatch.setattr(quarantine, "AGAIN", 0.001)
    house.others = 1
    house.answers = [OperationalError("away"), OperationalError("still away")]
    await house.add(one := held())
    assert house.told == [(one, False)]


async def test_a_database_that_stays_away_keeps_the_batch_no_longer_than_its_leases(house, monkeypatch):
    monkeypatch.setattr(quarantine, "AGAIN", 0.001)
    house.others = 1
    house.answers = [OperationalError("away") for _ in range(1000)]
    adding = asyncio.create_task(house.add(one := held(), other := held()))
    one.ask(Interrupt.LOST)
    await house.rest()
    assert not adding.done()
    other.ask(Interrupt.LOST)
    await adding
    await house.until(lambda: len(house.ended) == 2)
    assert (house.told, house.started) == ([], [])


@pytest.mark.parametrize("first", [SILENCE, RuntimeError("unforeseen")], ids=["cancelled", "fault"])
async def test_those_of_whom_nothing_could_be_said_are_given_back_when_the_worker_ends(house, first):
    house.others = 1
    house.answers = [first]
    adding = asyncio.create_task(house.add(one := held(), other := held()))
    await house.rest()
    adding.cancel()
    await asyncio.wait([adding])
    house.quarantine.close()
    await house.until(lambda: len(house.ended) == 2)
    assert {house.ended[n].reason for n in (one, other)} == {Reason.RELEASED}
    assert not any(ending.counted for ending in house.ended.values())


async def test_one_that_is_somebody_elses_by_now_is_not_started(house):
    house.others = 1
    await house.add(one := held())
    await house.until(lambda: house.told)
    house.answers = [frozenset()]
    house.free()
    await house.until(lambda: house.ended)
    assert (one.interrupt, house.started) == (Interrupt.LOST, [])


async def test_a_fault_of_the_quarantine_itself_is_told_so_that_the_worker_is_replaced(house):
    house.others = 1
    await house.add(held())
    house.answers = [RuntimeError("broken")]
    house.free()
    await house.until(lambda: house.quarantine.broken)
    assert house.quarantine.broken == "broken"
    assert [(ending.reason, ending.counted) for ending in house.ended.values()] == [(Reason.RELEASED, False)]


async def test_one_that_runs_on_past_its_limit_does_not_keep_the_whole_worker(house, monkeypatch):
    monkeypatch.setattr(quarantine, "OVERRUN", 0.0)
    runs, waits = held(timeout=0.01), held()

    def let_go(one):
        house.let_go.append(one)
        house.others = 1  # as the consumer counts it from then on

    monkeypatch.setattr(house.quarantine, "_let_go", let_go)
    await house.add(runs, waits)
    await house.until(lambda: house.let_go)
    assert (house.let_go, house.started, len(house.quarantine)) == ([runs], [runs], 1)
    await house.rest()
    assert house.started == [runs]
    house.free()
    await house.until(lambda: house.started == [runs, waits])


async def test_one_whose_end_is_only_to_be_written_is_left_alone(house, monkeypatch):
    monkeypatch.setattr(quarantine, "OVERRUN", 0.0)
    await house.add(runs := held(timeout=0.01))
    await house.until(lambda: house.started)
    runs.ended = True
    await asyncio.sleep(0.05)
    assert (house.let_go, len(house.quarantine)) == ([], 1)
