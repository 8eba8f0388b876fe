"""A claim whose answer was lost, and what a worker does when somebody else has its job."""

import pytest

import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import enqueue
from jobs.ids import new_id
from jobs.models import Job, Worker
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("type_", ["probe.async", "probe.once"])
def test_a_claim_whose_answer_was_lost_is_found_and_released_uncharged(fleet, type_):
    fleet.start(queues="default:2").wait_ready()
    worker = Worker.objects.get(name="a")
    # A queue that the worker does not serve keeps its own claims away; the claim itself is as its ledger would send it.
    id_ = enqueue(type_, {"key": "lost-answer"}, queue="elsewhere").id
    [claim] = transitions.claim_next(
        [("elsewhere", 1)], types=[type_], worker_id=worker.id, claim_id=new_id(), label={"name": "a"}, lease=60
    )
    eventually(lambda: Job.objects.get(pk=id_).state == "Enqueued", "the stray is released")
    assert attempts(id_) == [(1, "Interrupted", False)]
    assert Job.objects.get(pk=id_).dispatch_id != claim.dispatch_id
    assert not fleet.starts("lost-answer")


def test_a_worker_that_lost_its_lease_stops_the_handler_and_writes_nothing(fleet):
    fleet.start(queues="default:1").wait_ready()
    id_ = enqueue("probe.async", {"key": "taken", "hold": 60}).id
    started(fleet, "taken")
    from random import Random

    from jobs.retry import RetryPolicy

    # Recovery acts as if the lease had ended long ago; the rival that it wakes is this same worker, once it is free.
    transitions.expire(grace=-3600, limit=10, policy_of=lambda _: RetryPolicy(), lost_limit=3, rng=Random(1))
    started(fleet, "taken", times=2)
    transitions.cancel([id_])
    wait_state(id_, "Cancelled")
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "Cancelled", True)]
    assert Job.objects.get(pk=id_).attempts.get(ordinal=1).discarded_at is not None
    assert not fleet.lines("end")
