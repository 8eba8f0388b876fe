"""Limits of types in the whole cluster: how many run at once, how many start in a window; declared, changed, reset."""

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import Limits, RateLimit
from jobs.transitions.keys import TYPE as OF_TYPE
from tests.kit.gatecheck import wrong_slots
from tests.transitions import rows
from tests.transitions.flow import TYPE, end, enqueue, held, search
from tests.transitions.rows import execute, select

pytestmark = pytest.mark.django_db
MINUTE = RateLimit(3, 60.0)


@pytest.fixture(autouse=True)
def nothing_wrong():
    """After each test all slots belong to somebody."""
    yield
    assert wrong_slots() == []


def many(count, **columns):
    made = [new_id() for _ in range(count)]
    for id_ in made:
        enqueue(id_, **columns)
    return made


def limit(**limits):
    transitions.set_limits(TYPE, Limits(**limits), actor="ana")


def parked(waiting_for):
    return select("SELECT count(*) AS n FROM turno.jobs WHERE waiting_for = %s", waiting_for)[0]["n"]


def a_while_ago(seconds):
    """Time passes for the rates: what was spent was spent longer ago."""
    part = select('SELECT "window" / 50 AS part FROM turno.rates')[0]["part"]
    execute(
        "UPDATE turno.rates SET spent = ("
        " SELECT COALESCE(jsonb_agg(jsonb_build_array((s->>0)::bigint - %s, s->1)), '[]')"
        " FROM jsonb_array_elements(spent) AS s)",
        int(seconds / part),
    )


def test_no_more_of_a_type_run_than_its_limit_whatever_their_queue_or_key():
    limit(max_running=2)
    many(3)
    many(2, concurrency_key="k", concurrency_limit=9)
    many(2, type="other")
    found = search(9, types=[TYPE, "other"])
    assert sorted(claim.type for claim in found) == [TYPE, TYPE, "other", "other"]
    assert parked("type_limit") == 3


def test_the_end_of_one_starts_the_next():
    limit(max_running=1)
    first, second, third = many(3)
    order = []
    while found := search(9):
        order += [claim.id for claim in found]
        assert len(held(OF_TYPE, TYPE)) == 1
        end(*found)
    assert order == [first, second, third]
    assert rows.edges(third) == [
        (None, "Enqueued", "created"),
        ("Enqueued", "Scheduled", "parked"),
        ("Scheduled", "Enqueued", "gate_opened"),
        ("Enqueued", "Processing", "claimed"),
        ("Processing", "Succeeded", "succeeded"),
    ]


def test_who_comes_when_others_wait_for_the_limit_is_parked_at_once():
    limit(max_running=1)
    many(2)
    search(2)
    (late,) = many(1)
    assert rows.job(late)["waiting_for"] == "type_limit"


def test_a_limit_that_comes_counts_those_that_run():
    many(4)
    found = search(3)
    limit(max_running=2)
    assert len(held(OF_TYPE, TYPE)) == 3
    assert search(4) == []
    end(*found[:2])
    assert len(search(4)) == 1


def test_a_larger_limit_lets_more_run_and_none_lets_all():
    limit(max_running=1)
    many(6)
    assert len(search(9)) == 1
    limit(max_running=3)
    transitions.open_keys([(OF_TYPE, TYPE)], limit=100)
    assert len(search(9)) == 2
    limit()
    transitions.open_keys([(OF_TYPE, TYPE)], limit=100)
    assert len(search(9)) == 3


def test_no_more_start_in_a_window_than_the_rate_allows():
    limit(rate=MINUTE)
    many(5)
    found = search(9)
    assert len(found) == 3
    end(*found)
    assert search(9) == []
    assert (parked("rate"), transitions.open_rates(limit=100)[0]) == (2, 0)
    a_while_ago(59)
    assert transitions.open_rates(limit=100)[0] == 0
    a_while_ago(3)
    assert transitions.open_rates(limit=100) == (2, None)
    assert len(search(9)) == 2


def test_a_clock_that_was_set_back_by_hours_is_known_by_the_next_look():
    limit(rate=RateLimit(1, 60.0))
    many(3)
    end(*search(1))
    assert search(9) == []
    a_while_ago(-7200)
    woken, wait = transitions.open_rates(limit=100)
    assert (woken, 50 < wait < 63) == (0, True)
    a_while_ago(62)
    assert transitions.open_rates(limit=100)[0] == 1
    assert len(search(9)) == 1


def test_one_is_woken_for_each_start_that_may_be():
    limit(rate=RateLimit(1, 60.0))
    many(3)
    end(*search(1))
    assert search(9) == []
    a_while_ago(62)
    woken, wait = transitions.open_rates(limit=100)
    assert (woken, 50 < wait < 63) == (1, True)
    assert transitions.open_rates(limit=100)[0] == 0
    assert len(search(9)) == 1
    assert parked("rate") == 1


def test_what_waited_for_a_rate_takes_its_slot_of_a_key_when_it_is_woken():
    limit(rate=RateLimit(1, 60.0))
    many(1)
    end(*search(1))
    keyed = many(2, concurrency_key="k", concurrency_limit=1)
    assert search(9) == []
    a_while_ago(62)
    assert transitions.open_rates(limit=100)[0] == 1
    assert held("key", "k") == [keyed[0]]
    assert [claim.id for claim in search(9)] == [keyed[0]]


def test_a_rate_that_is_gone_lets_all_through():
    limit(rate=RateLimit(1, 3600.0))
    many(4)
    assert len(search(9)) == 1
    assert search(9) == []
    limit()
    assert transitions.open_rates(limit=100)[0] == 3
    assert len(search(9)) == 3


def test_a_new_rate_counts_what_has_just_started():
    limit(rate=RateLimit(10, 60.0))
    many(8)
    assert len(search(5)) == 5
    limit(rate=RateLimit(6, 60.0))
    assert len(search(5)) == 1
    limit(rate=RateLimit(7, 120.0))
    transitions.open_rates(limit=100)
    assert len(search(5)) == 1


def test_declared_limits_hold_until_a_person_changes_them_and_again_when_they_are_given_back():
    declared = {TYPE: Limits(2, MINUTE), "other": Limits()}
    assert transitions.declare_limits(declared) == [TYPE]
    assert transitions.declare_limits(declared) == []
    assert most() == (2, 3)
    limit(max_running=5)
    assert most() == (5, None)
    assert transitions.declare_limits({TYPE: Limits(4, None)}) == [TYPE]
    assert most() == (5, None)
    assert transitions.reset_limits(TYPE) == Limits(4, None)
    assert most() == (4, None)
    assert transitions.declare_limits({TYPE: Limits()}) == [TYPE]
    assert most() == (None, None)


def most():
    row = select(
        "SELECT t.max_running, r.allowed FROM turno.job_types AS t LEFT JOIN turno.rates AS r ON r.type = t.name "
        "WHERE t.name = %s",
        TYPE,
    )[0]
    return row["max_running"], row["allowed"]


def test_who_was_claimed_while_a_limit_was_set_is_counted_by_the_sweep():
    limit(max_running=1)
    many(1)
    search(1)
    execute("DELETE FROM turno.concurrency_slots")
    assert transitions.seat_running() == 1
    assert transitions.seat_running() == 0
