"""The five settings of a breaker: for all types, by type, and refused by name."""

import re

import pytest
from pydantic import ValidationError

from jobs.breaker import BreakerPolicy
from jobs.conf import overridden
from jobs.policy import breaker_policy

BAD = [
    ("breaker", "maybe"),
    *(("breaker_ratio", value) for value in (0, -0.5, 1.01, "nan", "half", True)),
    *(("breaker_window", value) for value in (0, "50ms", "25h", -1, "soon", True)),
    *(("breaker_minimum", value) for value in (0, 1.5, 1_000_001, "ten", True)),
    *(("breaker_open_for", value) for value in (0, "2d", "soon", True)),
]


@pytest.mark.parametrize(("key", "value"), BAD)
@pytest.mark.parametrize("typed", [False, True], ids=["for all", "by type"])
def test_a_value_that_makes_no_breaker_is_refused_by_its_key(key, value, typed):
    told = {"types": {"a.type": {key: value}}} if typed else {key: value}
    where = f"resilience.types.`a.type`.{key}" if typed else f"resilience.{key}"
    with pytest.raises(ValidationError, match=rf"(?m)^{re.escape(where)}$"):
        overridden(resilience=told).__enter__()


def test_what_a_type_does_not_say_is_said_for_all():
    told = {"breaker_window": "2 min", "breaker_minimum": "3", "breaker_ratio": "0.25", "breaker": "false"}
    with overridden(resilience=told | {"types": {"a.type": {"breaker": True, "breaker_open_for": "500ms"}}}):
        assert breaker_policy("a.type") == BreakerPolicy(True, 0.25, 120.0, 3, 0.5)
        assert breaker_policy("b.type") == BreakerPolicy(False, 0.25, 120.0, 3, 30.0)
    assert breaker_policy("a.type") == BreakerPolicy()
