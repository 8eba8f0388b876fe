"""Keys, two at a time: claims, ends, cancels, enqueues and retention that meet at one key."""

from random import Random

import pytest

from jobs import transitions
from jobs.retry import RetryPolicy
from jobs.transitions import Wanted
from jobs.transitions.keys import KEY
from tests.races.two import Other, holding, rival, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.flow import end, held, keyed, open_told, search, states
from tests.transitions.rows import ago, execute, select
from workers.retention import Retention

pytestmark = [COMMITTED, pytest.mark.usefixtures("gates_agree")]
ENGINE = "engine"
LOCK_KEYS = "SELECT id FROM turno.concurrency_keys WHERE kind = %s FOR NO KEY UPDATE"
LOSSES = {"policy_of": lambda _type: RetryPolicy(), "lost_limit": 9, "rng": Random(1), "limit": 9}


def known_key():
    """The key is there, and nobody holds it."""
    keyed(1)
    end(*search(1))


def one_runs(waiting):
    """A claim of the key, and the ids of those that wait for its end."""
    first, *others = keyed(1 + waiting)
    (claim,) = search(1 + waiting)
    assert claim.id == first
    return claim, others


def message(id_):
    return [Wanted(id_, rows.job(id_)["dispatch_id"], 1)]


def claimed(wanted):
    return Other(lambda: transitions.claim(wanted, **claimant(), using=ENGINE))


def lost(using=ENGINE):
    return transitions.expire(grace=15.0, **LOSSES, using=using)


def test_of_two_claims_at_once_one_starts_its_job_and_the_other_parks_its_own():
    known_key()
    first, second = keyed(2)
    with holding():
        (claim,) = search(1)
        late = Other(lambda: search(1, using=ENGINE))
        late.is_waiting()
    assert late.answer() == []
    assert (claim.id, states("k")) == (first, {"Succeeded": 1, "Processing": 1, "parked": 1})
    end(claim)
    assert held(KEY, "k") == [second]


def test_of_two_messages_at_once_one_starts_its_job_and_the_other_parks_its_own():
    known_key()
    first, second = keyed(2)
    with holding():
        (claim,) = transitions.claim(message(first), **claimant())
        late = claimed(message(second))
        late.is_waiting()
    assert late.answer() == []
    end(claim)
    assert held(KEY, "k") == [second]


def test_a_claim_that_meets_the_end_of_the_last_one_waits_for_it_and_starts():
    claim, _ = one_runs(0)
    (second,) = keyed(1)
    with holding():
        end(claim)
        late = Other(lambda: search(1, using=ENGINE))
        late.is_waiting()
    assert [found.id for found in late.answer()] == [second]


def test_an_end_that_meets_a_claim_which_parks_waits_for_it_and_wakes_what_was_parked():
    claim, _ = one_runs(0)
    (second,) = keyed(1)
    with holding():
        assert search(1) == []
        late = Other(lambda: end(claim, using=ENGINE))
        late.is_waiting()
    late.answer()
    assert held(KEY, "k") == [second]


def parked_while_all_others_end(then=lambda: None):
    """A job whose enqueue parks it and is committed when nobody else is there any more; and what `then` returned."""
    claim, _ = one_runs(1)

    def ends():
        found = [claim]
        while found:
            end(*found, using=ENGINE)
            found = search(2, using=ENGINE)
        return then()

    with holding():
        (late,) = keyed(1)
        (answer,) = together([ends])
    assert states("k") == {"Succeeded": 2, "parked": 1}
    return late, answer


def test_what_an_enqueue_parks_while_the_gate_opens_is_woken_when_its_notification_is_heard(ear):
    late, _ = parked_while_all_others_end()
    open_told(ear)
    assert [claim.id for claim in search(1)] == [late]


def test_and_by_the_sweep_where_it_is_lost():
    late, _ = parked_while_all_others_end()
    assert transitions.sweep(after="", age=0.0, limit=9).found == 1
    assert [claim.id for claim in search(1)] == [late]


def test_a_claim_that_waited_for_the_cancel_of_a_woken_job_gets_nothing_and_the_next_is_woken():
    claim, (second, third) = one_runs(2)
    end(claim)
    wanted = message(second)
    with holding():
        transitions.cancel([second])
        late = claimed(wanted)
        late.is_waiting()
    assert late.answer() == []
    assert held(KEY, "k") == [third]


def test_a_cancel_that_waited_for_the_claim_of_a_woken_job_asks_its_worker_and_gives_no_slot_away():
    claim, (second, third) = one_runs(2)
    end(claim)
    with holding():
        (claim,) = search(1)
        late = Other(lambda: transitions.cancel([second], using=ENGINE))
        late.is_waiting()
    (verdict,) = late.answer()
    assert verdict.requested
    assert (held(KEY, "k"), rows.job(third)["waiting_for"]) == ([second], "concurrency_key")
    end(claim)
    assert held(KEY, "k") == [third]


def overdue(waiting):
    claim, others = one_runs(waiting)
    execute(f"UPDATE turno.jobs SET lease_expires_at = {ago(60)} WHERE state = 'Processing'")
    return claim, others


def test_recovery_that_waited_for_the_end_of_an_execution_hands_nothing_over_again():
    claim, (second, third) = overdue(2)
    with holding():
        end(claim)
        late = Other(lost)
        late.is_waiting()
    assert late.answer() == []
    assert (held(KEY, "k"), rows.job(third)["waiting_for"]) == ([second], "concurrency_key")


def test_an_end_that_waited_for_recovery_hands_nothing_over():
    """What was lost is in its queue again, and comes first."""
    claim, others = overdue(2)
    with holding():
        assert [found.id for found in lost("default")] == [claim.id]
        late = Other(lambda: end(claim, using=ENGINE))
        late.is_waiting()
    late.answer()
    assert held(KEY, "k") == []
    assert [found.id for found in search(3)] == held(KEY, "k") == [claim.id]
    assert [rows.job(id_)["waiting_for"] for id_ in others] == ["concurrency_key"] * 2


def test_retention_forgets_keys_that_nobody_needs():
    known_key()
    assert Retention().run_once() == 0
    execute("UPDATE turno.concurrency_keys SET created_at = now() - interval '2 hours'")
    assert Retention().run_once() == 1
    assert select("SELECT * FROM turno.concurrency_keys") == []


def test_a_key_that_somebody_has_locked_is_not_forgotten():
    known_key()
    with rival() as other:
        other.execute(LOCK_KEYS, ["key"])
        assert transitions.forget_keys(age=-1.0, limit=9) == 0
    assert transitions.forget_keys(age=-1.0, limit=9) == 1


def test_a_claim_that_waited_for_a_key_which_is_forgotten_makes_it_anew():
    known_key()
    with holding():
        assert transitions.forget_keys(age=-1.0, limit=9) == 1
        late = Other(lambda: (keyed(1, using=ENGINE), search(1, using=ENGINE)))
        late.is_waiting()
    made, found = late.answer()
    assert [claim.id for claim in found] == made == held(KEY, "k")


def test_what_an_open_transaction_parks_at_a_key_that_is_forgotten_meanwhile_is_woken(ear):
    late, forgotten = parked_while_all_others_end(lambda: transitions.forget_keys(age=-1.0, limit=9, using=ENGINE))
    assert forgotten == 1
    open_told(ear)
    assert [claim.id for claim in search(1)] == [late]
