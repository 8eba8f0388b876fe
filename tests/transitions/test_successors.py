"""With an end its slot of the worker may go to whoever waits for the key: what a wake and a claim would have left is
there, and who may not start so is woken as ever."""

import pytest
from django.db import connections

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import Ending
from jobs.ratelimit import Limits, RateLimit
from jobs.states import Outcome, Reason, State
from jobs.transitions.keys import KEY, WAKE
from jobs.transitions.seats import owned_by
from jobs.transitions.successors import SUCCEED
from tests.kit.gatecheck import wrong_slots
from tests.outbox.rows import with_broker
from tests.races.two import rival
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, claimant
from tests.transitions.flow import TYPE, enqueue, held, keyed, search, states
from tests.transitions.rows import ahead, execute, select

pytestmark = COMMITTED
MINE = ("worker_id", "worker_label", "slot", "executions", "progress", "stage", "gate", "waiting_for", "announced_at")


@pytest.fixture(autouse=True)
def nothing_wrong():
    """After each test all slots belong to somebody."""
    yield
    assert wrong_slots() == []


def parked(**columns):
    """A job that has come to the full key, and waits there."""
    (id_,) = keyed(1, **columns)
    assert search(4, queue=columns.get("queue", "default")) == []
    assert rows.state(id_) == "Scheduled"
    return id_


def settle(*claims, offer=None, room=0, types=(TYPE,), result=None):
    """Their ends, with the slots of those of `offer` (all) for whoever comes next; who has started, in order."""
    endings = [
        Ending(c.id, c.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED, result=result) for c in claims
    ]
    slots = {c.dispatch_id: (c.queue, c.slot) for c in (claims if offer is None else offer)}
    seats = transitions.Seats(
        slots, dict.fromkeys({c.queue for c in claims}, room), list(types), owned_by(**claimant())
    )
    answers = transitions.settle(endings, worker_id=CALLER, seats=seats, using="engine")
    return [answer.successor for answer in answers]


def test_who_comes_next_on_a_key_starts_in_the_slot_with_the_end_and_nobody_is_told(committed, ear):
    first, second, third = keyed(3)
    (claim,) = search(4)
    ear.heard()
    (next_,) = settle(claim)
    assert (next_.id, next_.queue, next_.slot, next_.execution, next_.keyed) == (second, "default", claim.slot, 1, True)
    assert held(KEY, "k") == [second]
    assert ear.heard() == []
    assert search(4) == []
    assert (rows.state(first), rows.state(third)) == ("Succeeded", "Scheduled")
    assert settle(next_)[0].id == third


def test_it_leaves_behind_what_a_wake_and_a_claim_leave(committed):
    keyed(3)
    (claim,) = search(4)
    (one,) = settle(claim)
    fast, steps = rows.job(one.id), rows.edges(one.id)
    assert settle(one, offer=[]) == [None]
    (other,) = search(4)
    slow = rows.job(other.id)
    assert steps == rows.edges(other.id)
    assert {name: fast[name] for name in MINE} == {name: slow[name] for name in MINE}
    assert fast["admitted"] == fast["dispatch_id"] == one.dispatch_id
    assert slow["admitted"] == slow["dispatch_id"] == other.dispatch_id
    (claimed,) = [change for change in rows.history(one.id) if change["reason"] == "claimed"]
    assert (claimed["worker_id"], claimed["execution"]) == (CALLER, 1)
    (attempt,) = rows.attempts(one.id)
    assert (attempt["worker_name"], attempt["slot"], attempt["dispatch_id"]) == ("w", claim.slot, one.dispatch_id)


REFUSED = {
    "its type is another worker's": ({}, {"types": ["another.type"]}, None),
    "its queue is another one": ({"queue": "elsewhere"}, {}, None),
    "it was lost before": ({}, {}, "UPDATE turno.jobs SET lost_count = 1 WHERE id = %s"),
    "somebody stands before it in its queue": ({}, {"room": 0}, "before"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_who_may_not_start_so_is_woken_with_its_slot_as_ever(case, committed, ear):
    columns, offer, first = REFUSED[case]
    keyed(1)
    (claim,) = search(4)
    waits = parked(**columns)
    if first == "before":
        rows.make_job(type=TYPE, priority=5)
    elif first:
        execute(first, waits)
    ear.heard()
    assert settle(claim, **offer) == [None]
    assert rows.state(waits) == "Enqueued"
    assert held(KEY, "k") == [waits]
    assert ("turno_work", columns.get("queue", "default")) in ear.heard()


def test_who_stands_before_it_takes_nothing_from_it_where_another_slot_is_free(committed):
    keyed(1)
    (claim,) = search(4)
    waits = parked()
    rows.make_job(type=TYPE, priority=5)
    (next_,) = settle(claim, room=1)
    assert next_.id == waits


def test_who_waits_behind_it_in_its_queue_does_not_keep_it(committed):
    keyed(1)
    (claim,) = search(4)
    waits = parked()
    rows.make_job(type=TYPE, priority=-5)
    rows.make_job(type=TYPE, enqueued_at=ahead(5))
    (next_,) = settle(claim)
    assert next_.id == waits


@pytest.mark.parametrize(
    ("scope", "value", "state"),
    [
        ("queue", "default", "Enqueued"),
        ("type", TYPE, "Scheduled"),
        ("key", "k", "Scheduled"),
        ("tag", "t", "Scheduled"),
    ],
)
def test_nothing_starts_that_a_pause_holds_back(scope, value, state, committed):
    keyed(1)
    (claim,) = search(4)
    waits = parked(tags=["t"])
    transitions.pause(scope, value, reason="", actor="a", until=None)
    try:
        assert settle(claim) == [None]
        assert rows.state(waits) == state
    finally:
        execute("DELETE FROM turno.pauses")


def test_a_pause_that_is_just_being_changed_is_left_to_the_claim(committed):
    """Whoever wakes does not wait for its row; the claim reads it all the same."""
    keyed(1)
    (claim,) = search(4)
    waits = parked()
    transitions.pause("type", TYPE, reason="", actor="a", until=None)
    try:
        with rival() as other:
            other.execute("UPDATE turno.pauses SET reason = 'changed'")
            assert settle(claim) == [None]
            assert rows.state(waits) == "Enqueued"
    finally:
        execute("DELETE FROM turno.pauses")


def test_nothing_starts_whose_breaker_is_open(committed):
    keyed(1)
    (claim,) = search(4)
    waits = parked()
    execute("INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES (%s, 'open', now(), now())", TYPE)
    try:
        assert settle(claim) == [None]
        assert rows.state(waits) == "Scheduled"
    finally:
        execute("DELETE FROM turno.circuits")


def test_a_rate_is_paid_in_a_claim_and_nowhere_else(committed):
    keyed(1)
    (claim,) = search(4)
    waits = parked()
    transitions.declare_limits({TYPE: Limits(rate=RateLimit(5, 60.0))})
    try:
        assert settle(claim) == [None]
        assert rows.state(waits) == "Enqueued"
    finally:
        execute("DELETE FROM turno.rates")


def test_of_a_lost_lease_nothing_follows(committed):
    keyed(2)
    (claim,) = search(4)
    execute("UPDATE turno.jobs SET dispatch_id = gen_random_uuid() WHERE id = %s", claim.id)
    execute("UPDATE turno.concurrency_slots SET dispatch_id = j.dispatch_id FROM turno.jobs AS j WHERE j.id = job_id")
    assert settle(claim) == [None]
    assert states("k") == {"Processing": 1, "parked": 1}


def test_an_end_that_is_written_again_starts_nobody_anew(committed):
    keyed(3)
    (claim,) = search(4)
    assert settle(claim)[0] is not None
    assert settle(claim) == [None]
    assert states("k") == {"Succeeded": 1, "Processing": 1, "parked": 1}


def test_the_best_get_the_slots_that_are_offered_and_the_others_are_woken(committed):
    two = {"concurrency_key": "k", "concurrency_limit": 2}
    enqueue(new_id(), new_id(), **two)
    claims = search(4)
    low, high = parked(**two), parked(**two, priority=3)
    (started,) = [claim for claim in settle(*claims, offer=claims[:1]) if claim]
    assert started.id == high
    assert (rows.state(low), set(held(KEY, "k"))) == ("Enqueued", {low, high})


def test_a_slot_that_nobody_waits_for_stays_free(committed):
    (claim,) = (keyed(1), search(4))[1]
    assert settle(claim) == [None]
    assert held(KEY, "k") == []


def test_each_half_of_a_batch_with_a_bad_row_has_those_who_follow_it(committed):
    for key in ("k", "l"):
        keyed(2, concurrency_key=key)
    claims = search(4)
    good, bad = claims
    endings = [
        Ending(c.id, c.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED, result=result)
        for c, result in ((good, "1"), (bad, "no json"))
    ]
    seats = transitions.Seats(
        {c.dispatch_id: (c.queue, c.slot) for c in claims}, {"default": 0}, [TYPE], owned_by(**claimant())
    )
    answers = transitions.settle(endings, worker_id=CALLER, seats=seats, using="engine")
    assert [answer.state for answer in answers] == [State.SUCCEEDED, State.FAILED]
    assert [answer.successor.slot for answer in answers] == [good.slot, bad.slot]


def test_where_a_broker_carries_the_work_no_message_is_written_of_it(committed):
    with with_broker():
        keyed(2)
        (claim,) = search(4)
        execute("DELETE FROM turno.outbox_messages")
        (next_,) = settle(claim)
    assert next_.execution == 1
    assert select("SELECT count(*) AS n FROM turno.outbox_messages") == [{"n": 0}]


def test_a_limit_of_a_type_is_a_key_too(committed):
    transitions.declare_limits({TYPE: Limits(max_running=1)})
    try:
        first, second = enqueue(new_id())[0].id, None
        (claim,) = search(4)
        second = new_id()
        enqueue(second)
        search(4)
        (next_,) = settle(claim)
        assert (claim.id, next_.id, next_.keyed) == (first, second, True)
    finally:
        execute("UPDATE turno.job_types SET max_running = NULL")


def test_its_lease_counts_from_its_own_start(committed):
    keyed(2)
    (claim,) = search(4)
    execute("UPDATE turno.jobs SET lease_expires_at = now() + interval '1 second' WHERE id = %s", claim.id)
    (next_,) = settle(claim)
    assert rows.job(next_.id)["lease_expires_at"] > select("SELECT now() + interval '50 seconds' AS at")[0]["at"]


def test_nobody_starts_without_its_slot_when_its_queue_is_resumed_in_that_moment(committed):
    """Who is let through to a paused queue has no slots; a statement later the queue may be paused no more."""
    keyed(3)
    (claim,) = search(4)
    execute("INSERT INTO turno.pauses (scope, value, reason, paused_by) VALUES ('queue', 'default', 'x', 'ana')")
    times = []

    def resumed(run, sql, params, many, context):
        if sql in (SUCCEED, WAKE):
            with rival() as other:
                other.execute("DELETE FROM turno.pauses")
                other.commit()
            times.append(sql)
        return run(sql, params, many, context)

    with connections["engine"].execute_wrapper(resumed):
        assert settle(claim) == [None]
    assert times == [WAKE]
    assert held(KEY, "k") == []
    assert states("k").get("Processing") is None
