"""The priority of a job that waits: changed in place; a broker gets a new message, and the old one counts no more."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.conf import overridden
from jobs.outcomes import Verdict
from jobs.states import State
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, execute, make_job, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
WAITING = {State.SCHEDULED, State.ENQUEUED}
BROKER = {"transport": "rabbitmq", "urls": ("amqp://127.0.0.1:1",)}


@pytest.mark.parametrize("state", sorted(State))
def test_only_a_job_that_waits_gets_another_priority(using, state):
    made = make_job(state)
    [verdict] = transitions.reprioritise([made.id], 7, using=using)
    waits = state in WAITING
    assert verdict == Verdict(made.id, applied=waits, state=state, problem=None if waits else "state")
    row = rows.job(made.id)
    assert (row["priority"], row["dispatch_id"], row["state"]) == (7 if waits else 0, made.token, state)


def test_what_is_not_there_is_said_and_stops_no_other(using):
    here, gone = make_job(), uuid4()
    verdicts = transitions.reprioritise([gone, here.id], -10, using=using)
    assert [verdict.problem for verdict in verdicts] == ["not_found", None]
    assert rows.job(here.id)["priority"] == -10


def test_within_a_queue_the_new_priority_decides_and_the_place_among_equals_stays(using):
    old, young, last = (make_job(enqueued_at=ago(seconds)) for seconds in (30, 20, 10))
    transitions.reprioritise([young.id, last.id], 5, using=using)
    transitions.reprioritise([last.id], 5, using=using)
    offer = [("default", number) for number in range(1, 4)]
    claims = transitions.claim_next(offer, types=["test.echo"], **claimant(), using=using)
    assert [claim.id for claim in claims] == [young.id, last.id, old.id]


def test_with_a_broker_the_job_gets_a_new_message_and_the_old_one_starts_nothing(using):
    made, parked = make_job(announced_at=ago(9)), make_job("Scheduled", waiting_for="pause", gate="type:x")
    with overridden(messaging=BROKER):
        transitions.reprioritise([made.id, parked.id], 9, using=using)
        transitions.reprioritise([made.id], 9, using=using)
    [message] = select("SELECT job_id, dispatch_id, priority FROM turno.outbox_messages")
    row = rows.job(made.id)
    assert (message["job_id"], message["dispatch_id"], message["priority"]) == (made.id, row["dispatch_id"], 9)
    assert (row["announced_at"], row["dispatch_id"] == made.token) == (None, False)
    assert transitions.claim([(made.id, made.token, 1)], **claimant(), using=using) == []
    assert [c.id for c in transitions.claim([(made.id, row["dispatch_id"], 1)], **claimant(), using=using)] == [made.id]


def test_with_a_broker_what_a_job_holds_in_its_hand_goes_over_to_the_new_message(using):
    execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'k')")
    made = make_job(concurrency_key="k", concurrency_limit=1)
    execute("UPDATE turno.jobs SET admitted = dispatch_id")
    execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id) "
        "SELECT id, 1, %s, %s FROM turno.concurrency_keys", made.id, made.token,
    )  # fmt: skip
    try:
        with overridden(messaging=BROKER):
            transitions.reprioritise([made.id], 9, using=using)
        row = rows.job(made.id)
        [slot] = select("SELECT dispatch_id FROM turno.concurrency_slots")
        assert row["admitted"] == row["dispatch_id"] == slot["dispatch_id"] != made.token
    finally:
        execute("DELETE FROM turno.concurrency_keys")
