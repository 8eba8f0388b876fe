"""An end with a key knows in one go who waits: which statements it says, and what of them outlives its transaction."""

from contextlib import contextmanager

import pytest
from django.db import connections, transaction

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import Limits, RateLimit
from jobs.transitions import finish, gatekeeper, handover, keys, successors
from jobs.transitions.sql import fetch, filled_arrays
from tests.races.two import Other
from tests.transitions import COMMITTED
from tests.transitions.flow import TYPE, enqueue, keyed, search, states
from tests.transitions.test_successors import settle

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
NAMES = {
    keys.LOCK_HELD: "lock the keys",
    finish.FINISH: "end",
    finish.LEFT_BEHIND: "left behind?",
    handover.COMING: "coming",
    handover.NEXT: "next",
    gatekeeper.BESIDES: "besides?",
    gatekeeper.LIMITS_AND_OTHERS: "limits and others",
    successors.SUCCEED: "start",
    keys.WAKE: "wake",
}


@contextmanager
def said():
    """The statements of the engine's alias, by name."""
    names = []

    def watch(execute, sql, params, many, context):
        names.extend(filter(None, [NAMES.get(sql)]))
        return execute(sql, params, many, context)

    with connections["engine"].execute_wrapper(watch):
        yield names


def test_who_comes_next_is_known_with_the_end_and_starts_with_the_statement_after_it():
    keyed(2)
    (claim,) = search(2)
    with said() as names:
        assert settle(claim) != [None]
    assert names == ["lock the keys", "end", "left behind?", "coming", "next", "besides?", "start"]


BESIDES = {
    "a pause of another type": lambda: transitions.pause("type", "test.other"),
    "a pause of a queue": lambda: transitions.pause("queue", "other"),
    "a limit": lambda: transitions.set_limits("test.other", Limits(9, None), actor="ana"),
    "a rate": lambda: transitions.set_limits("test.other", Limits(None, RateLimit(9, 60)), actor="ana"),
}


@pytest.mark.parametrize("case", BESIDES)
def test_where_anything_is_limited_or_held_back_it_asks_what(case):
    keyed(2)
    (claim,) = search(2)
    BESIDES[case]()
    with said() as names:
        settle(claim)
    assert "limits and others" in names


def test_an_end_without_a_key_looks_at_nobody_who_waits():
    keyed(2)
    search(2)
    enqueue(new_id())
    (plain,) = search(1)
    assert settle(plain) == [None]
    assert states("k") == {"Processing": 1, "parked": 1}


def test_which_keys_were_locked_is_forgotten_with_the_transaction():
    keyed(1)
    (claim,) = search(1)
    held = filled_arrays(("id", "token"), [(claim.id, claim.dispatch_id)])
    engine = connections["engine"]
    for end in (lambda: None, lambda: transaction.set_rollback(True, using="engine")):
        with transaction.atomic(using="engine"), engine.cursor() as cursor:
            [(key,)] = fetch(cursor, keys.LOCK_HELD, held)
            assert fetch(cursor, f"SELECT {keys.LOCKED_HERE}", {}) == [([key],)]
            end()
        with engine.cursor() as cursor:
            assert fetch(cursor, f"SELECT {keys.LOCKED_HERE}", {}) == [(None,)]


def test_where_no_key_is_held_none_is_known():
    with transaction.atomic(using="engine"), connections["engine"].cursor() as cursor:
        assert fetch(cursor, keys.LOCK_HELD, filled_arrays(("id", "token"), [])) == []
        assert fetch(cursor, f"SELECT {keys.LOCKED_HERE}", {}) == [(None,)]
        assert fetch(cursor, handover.NEXT, {"keys": None, "depth": 9, "seen": []}) == []
        assert fetch(cursor, handover.COMING, {"keys": None}) == []


def test_an_end_locks_nobody_who_waits_at_another_key():
    """Of two types, or both ends would wait for one row of the figures."""
    keyed(2)
    keyed(2, concurrency_key="other", type="b.type")
    mine, others = sorted(search(4, types=(TYPE, "b.type")), key=lambda claim: claim.type)
    with transaction.atomic(using="engine"):
        assert settle(mine, room=3) != [None]
        late = Other(lambda: settle(others, room=3, types=("b.type",)))
        assert late.answer() != [None]
    assert states("k") == states("other") == {"Succeeded": 1, "Processing": 1}


def test_more_ends_of_a_key_than_a_look_takes_are_all_followed():
    keyed(30, concurrency_limit=12)
    claims = search(20)
    assert search(30) == []
    assert None not in settle(*claims, room=20)
    assert states("k") == {"Succeeded": 12, "Processing": 12, "parked": 6}
