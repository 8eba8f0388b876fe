"""Nobody waits at a key with room: whoever was about to take its place and does not leaves it to the next."""

from importlib import import_module

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import Limits, RateLimit
from jobs.transitions import gatekeeper
from jobs.transitions.keys import KEY
from tests.kit.gatecheck import wrong_slots
from tests.transitions import rows
from tests.transitions.flow import TYPE, K, end, enqueue, held, keyed, open_told, search
from tests.transitions.rows import execute, make_job, make_worker, select

pytestmark = pytest.mark.django_db
SCARCE = "scarce"
claim_module = import_module("jobs.transitions.claim")  # its name is also that of a verb


@pytest.fixture(autouse=True)
def nothing_wrong():
    """After each test all slots belong to somebody."""
    yield
    assert wrong_slots() == []


def due(id_):
    """What was enqueued for later comes into its queue now."""
    execute("UPDATE turno.jobs SET run_at = now() - interval '1 second' WHERE id = %s", id_)
    transitions.promote(limit=10)


@pytest.mark.parametrize("limits", [Limits(max_running=1), Limits(rate=RateLimit(1, 3600.0))])
def test_who_was_about_to_take_a_place_and_meets_another_gate_leaves_it_to_the_next(limits, ear):
    transitions.set_limits(SCARCE, limits, actor="ana")
    enqueue(new_id(), type=SCARCE)
    assert len(search(1, types=[SCARCE])) == 1
    keyed(1)
    (claimed,) = search(1)
    later = new_id()
    enqueue(later, type=SCARCE, delay=3600.0, **K)
    (waiting,) = keyed(1)
    search(1)
    due(later)
    end(claimed)
    assert held(KEY, "k") == []
    ear.heard()
    assert search(1, types=[SCARCE]) == []
    assert rows.job(later)["waiting_for"] in ("type_limit", "rate")
    open_told(ear)
    assert held(KEY, "k") == [waiting]


def test_who_is_cancelled_before_anybody_has_met_its_key_leaves_the_place_to_the_next(ear):
    first, second = sorted((new_id(), new_id()))
    enqueue(first, second, **K)
    ear.heard()
    transitions.cancel([first])
    open_told(ear)
    assert [claim.id for claim in search(1)] == [second]


def test_a_claim_that_finds_only_what_another_has_just_taken_looks_behind_it(monkeypatch):
    (keyed_one,) = keyed(1)
    free = new_id()
    enqueue(free)
    whole = claim_module.admit

    def taken_by_another(wanted, owner, **how):
        monkeypatch.setattr(claim_module, "admit", whole)
        assert [claim.id for claim in search(1)] == [keyed_one]
        return whole(wanted, owner, **how)

    monkeypatch.setattr(claim_module, "admit", taken_by_another)
    assert [claim.id for claim in search(1)] == [free]


def a_minute_later():
    execute(
        "UPDATE turno.jobs SET created_at = created_at - interval '1 minute',"
        " enqueued_at = enqueued_at - interval '1 minute'"
    )


def sweep(**how):
    return transitions.sweep(after="", age=3.0, limit=100, **how)


def test_whose_first_waits_for_a_worker_for_long_keeps_its_order():
    first, second = sorted((new_id(), new_id()))
    enqueue(first, second, **K)
    a_minute_later()
    assert (sweep().found, held(KEY, "k")) == (0, [])
    transitions.open_keys([(KEY, "k")], limit=10)
    assert [claim.id for claim in search(1)] == [first]


@pytest.mark.parametrize("columns", [{"queue": "elsewhere"}, {"type": "other"}, {"priority": 5}])
def test_who_would_not_stand_behind_it_waits_for_it_for_a_while_only(columns):
    first = new_id()
    enqueue(first, **K)
    second = make_job(state="Scheduled", waiting_for="concurrency_key", gate="k", **(K | {"type": TYPE} | columns)).id
    transitions.open_keys([(KEY, "k")], limit=10)
    assert held(KEY, "k") == []
    a_minute_later()
    assert (sweep().found, held(KEY, "k")) == (0, [second])


def test_a_sweep_leaves_a_gate_to_who_was_told_of_it_and_opens_it_when_it_comes_again():
    first, second = sorted((new_id(), new_id()))
    enqueue(first, second, **K)
    search(1)
    execute("DELETE FROM turno.jobs WHERE id = %s", first)
    a_minute_later()
    found, _, suspects = sweep(suspects=())
    assert (found, suspects, held(KEY, "k")) == (0, {(KEY, "k")}, [])
    found, _, suspects = sweep(suspects=suspects)
    assert (found, suspects, held(KEY, "k")) == (1, frozenset(), [second])


def test_jobs_of_a_queue_that_nobody_serves_do_not_hold_a_slot_one_after_the_other():
    make_worker(queues={"default": 4}, types=[TYPE])
    keyed(1)
    (claimed,) = search(1)
    keyed(30, queue="nobody")
    assert search(1, queue="nobody") == []
    (served,) = keyed(1)
    end(claimed)
    execute("UPDATE turno.concurrency_slots SET taken_at = now() - interval '1 minute'")
    assert transitions.free_idle(limit=10, silent_after=60.0) == 1
    assert held(KEY, "k") == [served]
    assert [claim.id for claim in search(1)] == [served]


def test_a_rate_that_is_taken_away_while_a_claim_waits_for_its_key_stops_nobody(monkeypatch):
    transitions.set_limits(TYPE, Limits(rate=RateLimit(1, 3600.0)), actor="ana")
    (first,) = keyed(1)
    whole = gatekeeper.keys.lock

    def meanwhile(cursor, wanted):
        cursor.execute("DELETE FROM turno.rates")
        return whole(cursor, wanted)

    monkeypatch.setattr(gatekeeper.keys, "lock", meanwhile)
    assert [claim.id for claim in search(1)] == [first]


def test_what_anybody_says_of_gates_where_nobody_waits_is_not_kept():
    transitions.open_keys([(KEY, "k" * 7000), (KEY, "none"), ("type", "none")], limit=10)
    assert select("SELECT * FROM turno.concurrency_keys") == []
