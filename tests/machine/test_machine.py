"""What Hypothesis draws of verbs, steps, deaths and hours breaks no promise."""

import os

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.machine.machine import UNHURRIED
from tests.transitions import COMMITTED

pytestmark = [COMMITTED, pytest.mark.slow]


def test_whatever_is_drawn_breaks_no_promise(machine):
    # Not made smaller: what breaks is said at once, and the run by hand looks for the least example.
    drawn = settings(max_examples=12, stateful_step_count=40, derandomize=True, phases=[Phase.generate], **UNHURRIED)
    run_state_machine_as_test(machine, settings=drawn)


@pytest.mark.longo
def test_whatever_is_drawn_for_long_breaks_no_promise(machine):
    examples = int(os.environ.get("MACHINES", "150"))
    drawn = settings(max_examples=examples, stateful_step_count=80, **UNHURRIED)
    run_state_machine_as_test(machine, settings=drawn)
