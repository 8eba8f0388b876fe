"""What a transaction tells the rest of the house: each word once, when it commits, and only what happened."""

import sys
from uuid import uuid4

from django.db import transaction

from jobs import transitions
from jobs.ids import new_id
from jobs.states import State
from jobs.transitions import CONTROL, DUE, WORK
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, claimant, ending, make
from tests.transitions.flow import TYPE, enqueue
from tests.transitions.rows import ago, make_job

pytestmark = COMMITTED


def test_a_batch_wakes_each_of_its_queues_once(ear, using):
    mades = [make_job(State.FAILED, queue=queue) for queue in ("a", "b", "a", "a")]
    transitions.requeue([made.id for made in mades], using=using)
    assert ear.heard() == [(WORK, "a"), (WORK, "b")]


def test_nothing_is_announced_before_the_commit_and_nothing_after_a_rollback(ear):
    made = make_job(State.FAILED)
    with transaction.atomic():
        transitions.requeue([made.id])
        assert ear.heard() == []
        transaction.set_rollback(True)
    assert ear.heard() == []
    assert rows.state(made.id) == State.FAILED


def test_a_retry_that_comes_before_the_promoter_looks_again_wakes_it(ear, using):
    soon, late = make("processing", Fence.RIGHT), make("processing", Fence.RIGHT)
    transitions.settle([ending(late, State.SCHEDULED, delay=3600.0)], worker_id=CALLER, using=using)
    assert ear.heard() == []
    transitions.settle([ending(soon, State.SCHEDULED, delay=0.2)], worker_id=CALLER, using=using)
    assert ear.heard() == [(DUE, "")]


def test_a_retry_that_was_cancelled_wakes_nobody(ear, using):
    case = make("processing, cancel asked", Fence.RIGHT)
    transitions.settle([ending(case, State.SCHEDULED, delay=0.2)], worker_id=CALLER, using=using)
    assert ear.heard() == []


def test_a_lost_owner_wakes_nobody(ear, using):
    case = make("processing", Fence.TOKEN)
    ends = [ending(case, State.ENQUEUED), ending(case, State.SCHEDULED, delay=0.2)]
    for end in ends:
        transitions.settle([end], worker_id=CALLER, using=using)
    transitions.release([(case.made.id, case.token)], worker_id=CALLER, using=using)
    assert ear.heard() == []


def test_a_cancel_tells_the_worker_of_each_running_job_which_one(ear, using):
    mades = [make_job(State.PROCESSING) for _ in range(2)]
    make_job(State.ENQUEUED)
    transitions.cancel([*(made.id for made in mades), uuid4()], using=using)
    heard = ear.heard()
    assert [channel for channel, _ in heard] == [CONTROL] * 2
    for made in mades:
        assert any(str(made.id) in payload and str(made.worker) in payload for _, payload in heard)


def test_promotion_wakes_the_queues_of_what_became_due(ear, using):
    for queue in ("a", "a", "b"):
        make_job(State.SCHEDULED, queue=queue, run_at=ago(1))
    make_job(State.SCHEDULED, queue="c")
    transitions.promote(limit=2, using=using)
    transitions.promote(limit=2, using=using)
    transitions.promote(limit=2, using=using)
    assert {payload for _, payload in ear.heard()} == {"a", "b"}


def test_a_search_that_could_not_look_behind_all_that_it_had_to_park_tells_that_there_is_more(ear, using, monkeypatch):
    monkeypatch.setattr(sys.modules[transitions.claim_next.__module__], "ROUNDS", 1)
    for _ in range(3):
        enqueue(new_id(), concurrency_key="k", concurrency_limit=1)
    (behind,) = enqueue(new_id())
    ear.heard()
    offer = {"offer": [("default", 1), ("default", 2)], "types": [TYPE], "using": using}
    assert len(transitions.claim_next(**offer, **claimant())) == 1
    assert (WORK, "default") in ear.heard()
    assert [claim.id for claim in transitions.claim_next(**offer, **claimant())] == [behind.id]
    assert (WORK, "default") not in ear.heard()
