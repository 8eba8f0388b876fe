"""The machine is not blind: with a guard taken away it says which promise is broken, and with it nothing is."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.guards import Attribute, BrokenPromise, Guard, without
from tests.laws.law import sql
from tests.laws.table import CLAIM_STATE, END_TOKEN, ONE_END
from tests.laws.table_keys import ONE_HOLDER, UNLOCKED, _nothing
from tests.machine import scenarios
from tests.machine.house import House
from tests.machine.machine import UNHURRIED, furnish
from tests.transitions import COMMITTED

pytestmark = [COMMITTED, pytest.mark.slow]
NOT_HANDED_OVER = Attribute("jobs.transitions.finish", "pass_on", _nothing)
UNTESTED = sql("claim.CLAIM_BY_ID", CLAIM_STATE)
CASES = {
    "the end's token": (scenarios.ended_late, (END_TOKEN, ONE_END), "a late owner's end was written"),
    "the lock of a key": (scenarios.one_key_claimed_by_two, (UNLOCKED, ONE_HOLDER), "jobs of the key k1 run"),
    "the next is woken with the end": (scenarios.left_waiting, (NOT_HANDED_OVER,), "waits for what is open"),
    "the state in a claim": (scenarios.message_twice, (UNTESTED,), "goes from Processing to Enqueued by claim"),
}
MEET = ("the lock of a key", "the state in a claim")  # there one waits for a lock of the other


@pytest.fixture
def house(machine):
    """A house with a live worker."""
    furnish()
    made = House(machine.crew, machine.ear)
    yield made
    machine.crew.drop()


@pytest.mark.parametrize("name", CASES)
def test_with_its_guard_nothing_is_broken(house, name):
    CASES[name][0](house)
    assert not house.open
    assert house.judge.started
    assert (house.waits > 0) is (name in MEET)


@pytest.mark.parametrize("name", CASES)
def test_without_its_guard_the_machine_says_what_is_broken(house, name):
    scenario, guards, promise = CASES[name]
    with without(*guards):
        try:
            with pytest.raises(BrokenPromise, match=promise):
                scenario(house)
        finally:
            house.crew.drop()


FOUND: dict[str, tuple[Guard, ...]] = {
    name: CASES[name][1] for name in ("the next is woken with the end", "the state in a claim")
}


@pytest.mark.longo
@pytest.mark.parametrize("name", FOUND)
def test_chance_finds_a_guard_that_is_gone(machine, name):
    drawn = settings(
        max_examples=200, stateful_step_count=50, derandomize=True, phases=[Phase.generate],
        report_multiple_bugs=False, **UNHURRIED,
    )  # fmt: skip
    with without(*FOUND[name]):
        try:
            with pytest.raises(BrokenPromise):
                run_state_machine_as_test(machine, settings=drawn)
        finally:
            machine.crew.drop()
