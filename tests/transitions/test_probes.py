"""The probe of a breaker: one job that is let through; what it ends as closes the breaker, or opens it anew."""

from random import Random
from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Ending, ErrorInfo
from jobs.retry import RetryPolicy
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.transitions import WORK, Wanted, returned
from tests.outbox.rows import outbox, with_broker
from tests.transitions import COMMITTED, rows
from tests.transitions.breakers import TYPE, circuit, claimed, ending, half_open, opened, park, parked, probe, settle
from tests.transitions.edges import CALLER, claimant
from tests.transitions.rows import ago, ahead, execute, make_job, make_worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("served")]


def test_the_best_parked_job_is_the_probe_and_no_other(using, ear):
    opened()
    parked(created_at=ago(90))
    best = parked(priority=5)
    parked(priority=9, queue="elsewhere")
    assert probe(using) == ([], 1)
    assert ear.heard() == [(WORK, "default")]
    row = circuit()
    assert (row["state"], row["probe_job_id"]) == ("half_open", best.id)
    assert rows.edges(best.id) == [("Scheduled", "Enqueued", "gate_opened")]
    assert probe(using) == ([], 0)  # one at a time
    newcomer = make_job(type=TYPE, priority=10)
    assert park(using) == 1
    assert [claim.id for claim in claimed(using)] == [best.id]
    assert rows.job(newcomer.id)["waiting_for"] == "circuit"


def test_after_one_has_failed_the_last_gets_its_chance_as_well_as_the_best(using):
    """Where the jobs themselves fail, those in front would keep all the others waiting for a probe each."""
    ends = {parked(priority=9).id, parked(created_at=ago(1)).id}
    parked(created_at=ago(60))
    chosen = set()
    for _ in range(200):
        execute("DELETE FROM turno.circuits")
        opened(opened_at=ago(90))
        assert probe(using) == ([], 1)
        chosen.add(circuit()["probe_job_id"])
        execute(
            "UPDATE turno.jobs SET state = 'Scheduled', waiting_for = 'circuit', gate = type, dispatch_id = NULL"
            " WHERE state = 'Enqueued'"
        )
        if chosen == ends:
            return
        assert chosen < ends
    raise AssertionError("the same end each time")


def test_the_probe_goes_by_a_message_of_its_own_where_a_broker_carries_the_work(using):
    opened()
    made = parked()
    with with_broker():
        assert probe(using) == ([], 1)
    [message] = outbox()
    wanted = [Wanted(made.id, message["dispatch_id"], 1, "default")]
    assert [claim.id for claim in transitions.claim(wanted, types=[TYPE], **claimant(), using=using)] == [made.id]


def test_without_a_job_the_breaker_stays_open_and_the_next_one_is_the_probe(using):
    opened()
    assert probe(using) == ([], 0)
    assert circuit()["state"] == "open"
    made = make_job(type=TYPE)
    assert (park(using), probe(using)) == (1, ([], 1))
    assert circuit()["probe_job_id"] == made.id


def test_before_its_time_nothing_is_let_through(using):
    opened(retry_at=ahead(9))
    parked()
    assert probe(using) == ([], 0)


def test_the_probes_success_closes_the_breaker_and_wakes_the_others(using, ear):
    claim = half_open(using)
    waiting = [parked() for _ in range(3)]
    ear.heard()
    settle(using, ending(claim, Outcome.SUCCEEDED))
    row = circuit()
    assert (row["state"], row["probe_job_id"], row["retry_at"]) == ("closed", None, None)
    assert row["closed_at"] is not None
    assert {rows.state(made.id) for made in waiting} == {"Enqueued"}
    assert ear.heard() == [(WORK, "default")]
    assert len(claimed(using)) == 3


@pytest.mark.parametrize(
    "end",
    [
        lambda job: ending(job, Outcome.FAILED),
        lambda job: ending(job, Outcome.TIMED_OUT),
        lambda job: ending(job, Outcome.WORKER_LOST, lost=True),
        lambda job: ending(job, Outcome.CANCELLED),
        lambda job: ending(job, Outcome.SNOOZED, counted=False),
        lambda job: returned(job.id, job.dispatch_id, type_name=TYPE, at_most_once=False),
        lambda job: Ending(
            job.id, job.dispatch_id, State.FAILED, Outcome.FAILED, Reason.PERMANENT, failure_kind=FailureKind.PERMANENT,
            error=ErrorInfo("E", "no"),
        ),
    ],
    ids=["failed", "timed out", "lost", "cancelled", "snoozed", "given back", "permanent"],
)  # fmt: skip
def test_any_other_end_of_the_probe_opens_the_breaker_anew(using, end):
    claim = half_open(using)
    waiting = parked()
    settle(using, end(claim))
    row = circuit()
    assert (row["state"], row["probe_job_id"], row["probe_deadline"], row["due"]) == ("open", None, None, False)
    assert rows.job(waiting.id)["waiting_for"] == "circuit"
    execute(f"UPDATE turno.circuits SET retry_at = {ago(1)}")
    assert probe(using) == ([], 1)  # and so the next one is let through when its time comes


def test_recovery_ends_the_probe_of_a_lost_worker_in_the_same_way(using):
    half_open(using)
    execute(f"UPDATE turno.jobs SET lease_expires_at = {ago(60)} WHERE state = 'Processing'")
    found = transitions.expire(
        grace=15.0, limit=9, policy_of=lambda _type: RetryPolicy(), lost_limit=3, rng=Random(1), using=using
    )
    assert len(found) == 1
    assert (circuit()["state"], circuit()["due"]) == ("open", False)


def test_the_end_of_an_execution_from_before_changes_nothing_while_a_probe_runs(using):
    late = make_job(type=TYPE)
    [old] = claimed(using)
    assert old.id == late.id
    half_open(using)
    before = circuit()
    settle(using, ending(old, Outcome.SUCCEEDED))
    assert circuit() == before
    another = make_job(State.PROCESSING, type=TYPE, worker=CALLER)
    failed = Ending(
        another.id, another.token, State.SCHEDULED, Outcome.FAILED, Reason.RETRY, delay=9.0, waiting_for=Waiting.RETRY
    )
    settle(using, failed)
    assert circuit() == before


def test_a_late_owner_of_the_probe_closes_nothing(using):
    claim = half_open(using)
    execute("UPDATE turno.jobs SET worker_id = %s WHERE id = %s", uuid4(), claim.id)
    assert settle(using, ending(claim, Outcome.SUCCEEDED))[0].state is None
    assert circuit()["state"] == "half_open"


@pytest.mark.parametrize(
    "what", ["cancelled", "deleted", "parked elsewhere", "its queue is paused", "it runs too long"]
)
def test_a_probe_that_comes_to_nothing_gives_way_to_another(using, what):
    opened()
    made = parked()
    assert probe(using) == ([], 1)
    if what == "it runs too long":
        assert len(claimed(using)) == 1
        execute(f"UPDATE turno.circuits SET probe_deadline = {ago(1)}")
        assert probe(using) == ([], 0)  # it may run for its time from the claim on, however long it has waited
        execute(f"UPDATE turno.jobs SET claimed_at = {ago(661)}")
    elif what == "parked elsewhere":
        row = rows.job(made.id)
        transitions.park_unknown([(made.id, row["dispatch_id"])], using=using)
    elif what == "its queue is paused":
        execute("INSERT INTO turno.pauses (scope, value) VALUES ('queue', 'default')")
    else:
        transitions.cancel([made.id], using=using)
        if what == "deleted":
            transitions.delete([made.id], using=using)
    assert probe(using) == ([TYPE], 0)
    assert (circuit()["state"], circuit()["due"]) == ("open", False)


def test_a_probe_that_waits_for_a_slot_keeps_its_turn(using):
    opened()
    parked()
    assert probe(using) == ([], 1)
    execute(f"UPDATE turno.circuits SET probe_deadline = {ago(3600)}")
    assert probe(using) == ([], 0)
    assert circuit()["state"] == "half_open"


def test_the_requests_own_time_limit_is_the_probes_too(using):
    opened()
    parked(timeout=5.0)
    probe(using)
    assert circuit()["probe_seconds"] == 65.0


def test_the_probe_is_of_a_queue_where_somebody_has_its_type(using):
    make_worker(queues={"elsewhere": 4}, types=["other"])
    opened()
    parked(queue="elsewhere", priority=9)
    made = parked()
    assert probe(using) == ([], 1)
    assert circuit()["probe_job_id"] == made.id


def test_where_nobody_has_the_type_one_goes_to_its_queue_to_be_met_there(using):
    """Else nobody would ever be told that the type is missing, and all would wait for a breaker that nothing closes."""
    execute("UPDATE turno.workers SET types = ARRAY['other']")
    opened()
    made = parked()
    assert probe(using) == ([], 1)
    assert rows.state(made.id) == "Enqueued"


def test_the_probe_has_the_place_in_the_queue_that_it_had(using):
    opened()
    made = parked(enqueued_at=ago(60))
    make_job(type="other", enqueued_at=ago(30))
    probe(using)
    assert claimed(using)[0].id == made.id
