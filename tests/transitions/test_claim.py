"""Claiming: which jobs, in which order, for which slots, and what the worker is told."""

import json
from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Claim
from jobs.states import State
from tests.transitions import rows
from tests.transitions.edges import claimant
from tests.transitions.rows import Sql, ago, ahead, execute, make_job, make_jobs

pytestmark = pytest.mark.django_db


def search(*offer, types=("test.echo",), **owner):
    """claim_next for the slots of `offer`, as (queue, slot number)."""
    return transitions.claim_next(list(offer), types=types, **(claimant() | owner))


def pause(queue, until=None):
    execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES ('queue', %s, {until or 'NULL'})", queue)


def test_the_highest_priority_is_claimed_first_then_the_longest_waiting_then_the_lowest_id():
    low = make_job(priority=-1, enqueued_at=ago(900))
    ids = sorted(uuid4() for _ in range(2))
    twins = [make_job(id=id_, enqueued_at=ago(60)) for id_ in reversed(ids)]
    older = make_job(enqueued_at=ago(61))
    urgent = make_job(priority=5, enqueued_at=ago(1))
    found = search(*[("default", n) for n in range(9)])
    assert [claim.id for claim in found] == [urgent.id, older.id, *ids, low.id]
    assert {twin.id for twin in twins} == set(ids)


def test_a_search_takes_at_most_one_job_a_free_slot_of_its_queue_and_numbers_them():
    make_jobs(5, queue="default")
    make_jobs(5, queue="critical")
    make_jobs(5, queue="other")
    offer = [("default", 2), ("critical", 0), ("default", 7), ("critical", 1), ("critical", 3)]
    found = search(*offer)
    assert sorted((claim.queue, claim.slot) for claim in found) == sorted(offer)
    assert rows.select("SELECT count(*) AS n FROM turno.jobs WHERE state = 'Enqueued'")[0]["n"] == 10


def test_a_queue_with_fewer_jobs_than_slots_leaves_the_others_their_own():
    make_job(queue="critical")
    make_jobs(3, queue="default")
    found = search(("critical", 0), ("critical", 1), ("default", 0))
    assert sorted(claim.queue for claim in found) == ["critical", "default"]


def test_types_that_the_worker_does_not_know_are_left_for_others():
    make_job(type="other.type", priority=9)
    known = make_job(type="test.echo")
    assert [claim.id for claim in search(("default", 0), types=["test.echo", "test.more"])] == [known.id]


def test_nothing_is_claimed_without_a_free_slot_or_a_known_type():
    make_job()
    assert search() == []
    assert search(("default", 0), types=[]) == []


def test_a_paused_queue_is_left_out_until_its_pause_ends():
    for queue in ("stopped", "stopped-for-long", "open-again", "never-paused"):
        make_job(queue=queue)
    pause("stopped")
    pause("stopped-for-long", ahead(60))
    pause("open-again", ago(1))
    execute("INSERT INTO turno.pauses (scope, value) VALUES ('type', 'never-paused')")
    found = search(*[(queue, 0) for queue in ("stopped", "stopped-for-long", "open-again", "never-paused")])
    assert sorted(claim.queue for claim in found) == ["never-paused", "open-again"]


def test_a_claim_tells_the_worker_all_that_it_needs():
    columns = {"payload": {"a": [1, None, "é"]}, "attempts_used": 2, "max_attempts": 7, "lost_count": 1}
    columns |= {"timeout": 12.5, "at_most_once": True, "owner": "ana", "tags": ["x", "y"], "executions": 4}
    made = make_job(**columns)
    [claim] = search(("default", 3))
    row = rows.job(made.id)
    assert claim == Claim(
        id=made.id,
        dispatch_id=made.token,
        type="test.echo",
        queue="default",
        payload={"a": [1, None, "é"]},
        slot=3,
        execution=5,
        attempts_used=2,
        max_attempts=7,
        lost_count=1,
        timeout=12.5,
        at_most_once=True,
        claimed_at=row["claimed_at"],
        owner="ana",
        tags=("x", "y"),
    )
    assert claim.attempt == 3


@pytest.mark.parametrize(
    "payload",
    [None, "text", 0, 1.5, [], {"deep": [[{}]]}, {"id": 2**63 - 1}, {"id": 2**64}, -(10**30), 10**400],
    ids=str,
)
def test_every_json_value_is_a_payload_and_whole_numbers_keep_their_digits(payload):
    make_job(payload=Sql(f"'{json.dumps(payload)}'::jsonb"))
    [claim] = search(("default", 0))
    assert (claim.payload, type(claim.payload)) == (payload, type(payload))


def test_the_row_names_its_owner_its_lease_and_a_clean_progress():
    made = make_job(progress=70, stage="before")
    owner = claimant() | {"lease": 90, "label": {"name": "w1", "host": "h"}}
    search(("default", 3), **owner)
    row = rows.job(made.id)
    assert (row["worker_id"], row["claim_id"], row["slot"]) == (owner["worker_id"], owner["claim_id"], 3)
    assert row["worker_label"] == {"name": "w1", "host": "h"}
    assert row["claimed_at"] == row["started_at"]
    assert (row["lease_expires_at"] - row["claimed_at"]).total_seconds() >= 90
    assert (row["progress"], row["stage"]) == (0, "")


def test_a_claim_by_id_takes_what_still_has_its_token_and_drops_the_rest():
    fresh, again = make_job(), make_job()
    wanted = [(fresh.id, fresh.token, 1), (again.id, uuid4(), 2), (uuid4(), uuid4(), 3)]
    found = transitions.claim(wanted, **claimant())
    assert [(claim.id, claim.slot) for claim in found] == [(fresh.id, 1)]
    assert (rows.state(fresh.id), rows.state(again.id)) == (State.PROCESSING, State.ENQUEUED)


def test_a_message_that_came_twice_is_claimed_once():
    made = make_job()
    assert len(transitions.claim([(made.id, made.token, 1), (made.id, made.token, 2)], **claimant())) == 1
    assert transitions.claim([(made.id, made.token, 3)], **claimant()) == []
    assert len(rows.history(made.id)) == 1
    assert rows.job(made.id)["executions"] == 1


def test_nothing_wanted_is_nothing_claimed():
    assert transitions.claim([], **claimant()) == []


def test_a_claim_that_had_to_wait_has_its_whole_lease_before_it():
    """The lease of one that waits for longer than a lease would else have ended when it is committed."""
    make_job()
    rows.select("SELECT pg_sleep(0.3)")  # the transaction has lasted for as long
    [claim] = search(("default", 1))
    row = rows.job(claim.id)
    assert (row["lease_expires_at"] - row["claimed_at"]).total_seconds() >= claimant()["lease"] + 0.3
