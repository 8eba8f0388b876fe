"""Concurrency keys: never more than the limit, the next one starts with the end of the one before, nothing is woken in
vain."""

from random import Random
from uuid import uuid4

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import Limits
from jobs.retry import RetryPolicy
from jobs.states import State
from jobs.transitions.keys import KEY
from tests.kit.gatecheck import wrong_slots
from tests.transitions import rows
from tests.transitions.edges import CALLER, claimant
from tests.transitions.flow import TYPE, end, enqueue, held, room_and_waiting, running, search, states
from tests.transitions.rows import execute, make_worker, select

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_wrong():
    """After each test all slots belong to somebody."""
    yield
    assert wrong_slots() == []


def ids(count):
    return [new_id() for _ in range(count)]


def test_jobs_of_one_key_run_one_after_the_other():
    first, second = ids(2)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    enqueue(second, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(4)
    assert (claimed.id, states("k")) == (first, {"Processing": 1, "parked": 1})
    assert search(4) == []
    end(claimed)
    assert held(KEY, "k") == [second]
    assert [claim.id for claim in search(4)] == [second]
    assert rows.edges(second) == [
        (None, "Enqueued", "created"),
        ("Enqueued", "Scheduled", "parked"),
        ("Scheduled", "Enqueued", "gate_opened"),
        ("Enqueued", "Processing", "claimed"),
    ]


def test_jobs_without_a_key_go_on_beside_a_full_one():
    enqueue(*ids(3), concurrency_key="k", concurrency_limit=1)
    for id_ in ids(3):
        enqueue(id_)
    assert len(search(4)) == 4


def test_a_search_finds_what_stands_behind_jobs_of_a_full_key():
    blocked = ids(30)
    for id_ in blocked:
        enqueue(id_, concurrency_key="k", concurrency_limit=1)
    free = new_id()
    enqueue(free)
    found = search(2)
    assert [claim.id for claim in found] == [blocked[0], free]
    assert states("k") == {"Processing": 1, "parked": 29}


def test_of_a_batch_as_many_are_enqueued_as_could_run_and_the_others_are_parked_at_once():
    answers = enqueue(*ids(7), concurrency_key="k", concurrency_limit=3)
    assert [answer.state for answer in answers] == ["Enqueued"] * 3 + ["Scheduled"] * 4
    assert len(search(9)) == 3


def test_who_comes_when_others_wait_is_parked_at_once_and_the_gate_is_told(ear):
    enqueue(*ids(2), concurrency_key="k", concurrency_limit=1)
    search(1)
    ear.heard()
    (answer,) = enqueue(new_id(), concurrency_key="k", concurrency_limit=1)
    assert answer.state == "Scheduled"
    assert ("turno_gates", "key:k") in ear.heard()


def test_the_next_is_the_best_by_priority_then_by_age():
    low, second, urgent, first = ids(4)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    for id_, priority in ((low, -1), (second, 0), (urgent, 5)):
        enqueue(id_, priority=priority, concurrency_key="k", concurrency_limit=1)
    search(1)
    order = []
    for _ in range(3):
        end(claimed)
        (claimed,) = search(1)
        order.append(claimed.id)
    assert order == [urgent, second, low]


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_never_more_than_the_limit_run_and_no_slot_is_idle_while_some_wait(limit):
    for id_ in ids(25):
        enqueue(id_, concurrency_key="k", concurrency_limit=limit)
    found, done = search(30), 0
    while found:
        assert running("k") == min(limit, 25 - done)
        done += 1
        end(found.pop(0))
        found += search(30)
    assert (done, states("k")) == (25, {"Succeeded": 25})


def test_a_woken_job_keeps_its_place_in_the_queue():
    first, second = ids(2)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    enqueue(second, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    search(1)
    execute("UPDATE turno.jobs SET created_at = now() - interval '1 hour' WHERE id = %s", second)
    for id_ in ids(5):
        enqueue(id_)
    end(claimed)
    assert search(1)[0].id == second


def test_nobody_is_woken_twice_and_parked_in_vain():
    for id_ in ids(40):
        enqueue(id_, concurrency_key="k", concurrency_limit=2)
    found = search(8)
    while found:
        end(*found)
        found = search(8)
    most = select("SELECT max(n) AS n FROM (SELECT count(*) AS n FROM turno.job_state_changes GROUP BY job_id) AS x")
    assert most[0]["n"] <= 5


def test_a_job_starts_when_fewer_than_its_own_limit_run():
    two, three, one = ids(3)
    running_ = ids(2)
    enqueue(*running_, concurrency_key="k", concurrency_limit=2)
    assert len(search(2)) == 2
    enqueue(one, concurrency_key="k", concurrency_limit=1)
    enqueue(two, concurrency_key="k", concurrency_limit=2)
    enqueue(three, concurrency_key="k", concurrency_limit=3)
    transitions.open_keys([(KEY, "k")], limit=10)
    assert [claim.id for claim in search(5)] == [three]


@pytest.mark.parametrize("how", ["cancel", "release", "retry"])
def test_whatever_ends_an_execution_hands_its_slot_over(how):
    first, second = ids(2)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    enqueue(second, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    assert search(1) == []
    if how == "cancel":
        transitions.cancel([first])
        end(claimed, to=State.ENQUEUED)
    elif how == "release":
        transitions.release([(first, claimed.dispatch_id)], worker_id=CALLER)
        # The released one is about to take the slot again: it came first.
        assert [claim.id for claim in search(1)] == [first]
        return
    else:
        execute("UPDATE turno.jobs SET lease_expires_at = now() - interval '1 hour' WHERE id = %s", first)
        transitions.expire(grace=1.0, limit=9, policy_of=lambda _t: RetryPolicy(), lost_limit=1, rng=Random(1))
    assert [claim.id for claim in search(1)] == [second]


def test_a_cancelled_job_that_was_woken_hands_its_slot_over():
    three = ids(3)
    for id_ in three:
        enqueue(id_, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    search(1)
    end(claimed)
    transitions.cancel([three[1]])
    assert held(KEY, "k") == [three[2]]


def test_a_cancelled_job_that_was_about_to_take_a_slot_makes_room():
    first, second = ids(2)
    enqueue(first, second, concurrency_key="k", concurrency_limit=1)
    assert states("k") == {"Enqueued": 1, "parked": 1}
    transitions.cancel([first])
    execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'k') ON CONFLICT DO NOTHING")
    transitions.open_keys([(KEY, "k")], limit=10)
    assert [claim.id for claim in search(1)] == [second]


def test_a_claim_by_message_parks_what_a_full_key_stops_and_leaves_nothing_waiting():
    first, second = ids(2)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    enqueue(second, concurrency_key="k", concurrency_limit=1)
    wanted = [
        transitions.Wanted(id_, rows.job(id_)["dispatch_id"], slot) for slot, id_ in enumerate((first, second), 1)
    ]
    assert [claim.id for claim in transitions.claim(wanted, **claimant())] == [first]
    assert transitions.left(wanted[1:], types=[TYPE]) == set()
    assert states("k") == {"Processing": 1, "parked": 1}


def test_keys_of_clients_and_types_of_the_same_name_do_not_meet():
    enqueue(new_id(), concurrency_key=TYPE, concurrency_limit=1)
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana")
    assert len(search(2)) == 1
    assert len(held("key", TYPE)) == len(held("type", TYPE)) == 1


def swept():
    execute("UPDATE turno.jobs SET created_at = created_at - interval '1 minute'")
    return transitions.sweep(after="", age=3.0, limit=100).found


def test_the_sweep_opens_a_gate_that_was_forgotten_and_counts_nothing_else():
    first, second = ids(2)
    enqueue(first, second, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    assert swept() == 0
    execute("DELETE FROM turno.jobs WHERE id = %s", claimed.id)
    assert swept() == 1
    assert held(KEY, "k") == [second]


def test_the_sweep_clears_slots_of_nobody_away():
    first, second = ids(2)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    enqueue(second, concurrency_key="k", concurrency_limit=1)
    search(2)
    execute("UPDATE turno.concurrency_slots SET taken_at = now() - interval '1 minute', dispatch_id = %s", uuid4())
    execute(
        "UPDATE turno.jobs SET state = 'Succeeded', finished_at = now(), worker_id = NULL, lease_expires_at = NULL, "
        "claim_id = NULL, claimed_at = NULL WHERE id = %s",
        first,
    )
    assert swept() == 2
    assert held(KEY, "k") == [second]


def test_a_woken_job_whose_queue_nobody_serves_lets_others_of_its_key_run():
    first, second, third = ids(3)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    enqueue(second, queue="nobody", concurrency_key="k", concurrency_limit=1)
    enqueue(third, concurrency_key="k", concurrency_limit=1)
    search(1, queue="nobody")
    search(1)
    end(claimed)
    assert held(KEY, "k") == [second]
    execute("UPDATE turno.concurrency_slots SET taken_at = now() - interval '1 minute'")
    execute("UPDATE turno.jobs SET enqueued_at = now() - interval '1 minute' WHERE id = %s", second)
    worker = make_worker(queues={"default": 4}, types=[TYPE])
    token = rows.job(second)["dispatch_id"]
    assert transitions.free_idle(limit=10, silent_after=60.0) == 1
    assert held(KEY, "k") == [third]
    assert (rows.state(second), rows.job(second)["dispatch_id"] == token) == ("Enqueued", False)
    assert [claim.id for claim in search(1)] == [third]
    assert search(1, queue="nobody") == []
    assert states("k") == {"Processing": 1, "Succeeded": 1, "parked": 1}
    execute("DELETE FROM turno.workers WHERE id = %s", worker)


def test_what_was_due_later_takes_its_turn_when_it_is_due():
    later, now = ids(2)
    enqueue(later, delay=3600.0, concurrency_key="k", concurrency_limit=1)
    assert states("k") == {"Scheduled": 1}
    enqueue(now, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    execute("UPDATE turno.jobs SET run_at = now() - interval '1 second' WHERE id = %s", later)
    transitions.promote(limit=10)
    assert search(1) == []
    end(claimed)
    assert [claim.id for claim in search(1)] == [later]
    assert room_and_waiting() == []
