"""Keys and limits: in which order they are locked, and hand-overs to jobs that need more than the gate that is free."""

from random import Random

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import Limits
from jobs.retry import RetryPolicy
from jobs.transitions.keys import KEY
from jobs.transitions.keys import TYPE as OF_TYPE
from tests.races.two import Other, holding, is_free, rival, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER
from tests.transitions.flow import TYPE, end, enqueue, held, keyed, open_told, running, search
from tests.transitions.rows import ago, execute, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("gates_agree")]
ENGINE = "engine"
LOCK_KEYS = "SELECT id FROM turno.concurrency_keys WHERE kind = %s FOR NO KEY UPDATE"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
LOSSES = {"policy_of": lambda _type: RetryPolicy(), "lost_limit": 9, "rng": Random(1), "limit": 9, "using": ENGINE}


VERBS = {
    "settle": lambda claim: end(claim, using=ENGINE),
    "release": lambda claim: transitions.release([(claim.id, claim.dispatch_id)], worker_id=CALLER, using=ENGINE),
    "expire": lambda _claim: transitions.expire(grace=15.0, **LOSSES),
    "take_back": lambda _claim: transitions.take_back(CALLER, **LOSSES),
}


@pytest.mark.parametrize("verb", VERBS)
def test_who_ends_an_execution_locks_its_key_first_and_then_the_job(verb):
    """In another order two that end the same one, its owner and recovery, would wait for each other."""
    keyed(2)
    (claim,) = search(2)
    execute(f"UPDATE turno.jobs SET lease_expires_at = {ago(60)} WHERE state = 'Processing'")
    with rival() as other:
        other.execute(LOCK_KEYS, ["key"])
        late = Other(lambda: VERBS[verb](claim))
        late.is_waiting()
        assert is_free(claim.id)
        other.commit()
    late.answer()
    assert running("k") == 0
    search(9)  # what was released comes first, and so does it park what it stands before
    assert running("k") == 1


def test_who_cancels_a_woken_job_locks_its_key_first_and_then_the_job():
    _, second, third = keyed(3)
    end(*search(3))
    with rival() as other:
        other.execute(LOCK_KEYS, ["key"])
        late = Other(lambda: transitions.cancel([second], using=ENGINE))
        late.is_waiting()
        assert is_free(second)
        other.commit()
    late.answer()
    assert held(KEY, "k") == [third]


def test_a_claim_that_is_under_way_when_a_limit_is_set_counts_from_the_next_sweep_on():
    enqueue(new_id())
    with holding():
        (claim,) = search(1)
        together([lambda: transitions.set_limits(TYPE, Limits(max_running=1), actor="ana", using=ENGINE)])
    assert held(OF_TYPE, TYPE) == []
    assert transitions.seat_running() == 1
    assert held(OF_TYPE, TYPE) == [claim.id]


def limits_set(using=ENGINE):
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana", using=using)


def test_an_end_that_waits_for_a_limit_that_is_being_set_leaves_no_slot_behind(ear):
    enqueue(new_id())
    (claim,) = search(1)
    with holding():
        limits_set("default")
        late = Other(lambda: end(claim, using=ENGINE))
        late.is_waiting()
    late.answer()
    assert rows.state(claim.id) == "Succeeded"
    assert held(OF_TYPE, TYPE) == []
    assert any(payload.startswith("id:") for channel, payload in ear.heard() if channel == transitions.GATES)


def test_who_sets_a_limit_waits_for_an_end_and_gives_it_no_slot():
    enqueue(new_id())
    (claim,) = search(1)
    with holding():
        end(claim)
        late = Other(limits_set)
        late.is_waiting()
    late.answer()
    assert held(OF_TYPE, TYPE) == []


def test_a_claim_waits_for_a_limit_that_is_being_changed_and_heeds_the_new_one():
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana")
    for _ in range(4):
        enqueue(new_id())
    with holding():
        transitions.set_limits(TYPE, Limits(max_running=3), actor="ana")
        late = Other(lambda: search(9, using=ENGINE))
        late.is_waiting()
    assert len(late.answer()) == len(held(OF_TYPE, TYPE)) == 3


def crossing():
    """Two jobs that need a key and a limit, one parked at the one, the other at the other; and who holds these."""
    enqueue(new_id())
    (of_type,) = search(1)
    at_type, at_key = *keyed(1), *keyed(1, queue="other")
    search(1)
    keyed(1, type="other")
    (of_key,) = search(1, types=["other"])
    search(1, queue="other")
    assert [rows.job(id_)["waiting_for"] for id_ in (at_type, at_key)] == ["type_limit", "concurrency_key"]
    return of_type, of_key, at_type, at_key


@pytest.fixture
def limited():
    """Of the type one may run."""
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana")


def all_run():
    """The ids of all that is found and ended until nothing more is."""
    order = []
    while found := [*search(1), *search(1, queue="other")]:
        order += [claim.id for claim in found]
        end(*found)
    return order


@pytest.mark.parametrize(("locked", "ends", "waits_at"), [("key", 0, 2), ("type", 1, 3)])
def test_who_hands_over_waits_for_no_further_gate_and_the_leader_opens_it(locked, ends, waits_at, limited, ear):
    crossed = crossing()
    with rival() as other:
        other.execute(LOCK_KEYS, [locked])
        together([lambda: end(crossed[ends], using=ENGINE)])  # it does not wait
        assert rows.state(crossed[waits_at]) == "Scheduled"
        other.commit()
    end(crossed[1 - ends])
    open_told(ear)
    assert sorted(all_run()) == sorted(crossed[2:])


def test_two_that_hand_over_to_jobs_that_need_each_others_gate_never_lock_each_other_out(limited, ear):
    before = select(DEADLOCKS)
    for _round in range(10):
        of_type, of_key, *waiting = crossing()
        together([lambda: end(of_type, using=ENGINE), lambda: end(of_key, using=ENGINE)])  # noqa: B023  (they end here)
        open_told(ear)
        assert sorted(all_run()) == sorted(waiting)
    assert select(DEADLOCKS) == before
