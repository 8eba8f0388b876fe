"""Relays against each other, against claims, cancels and deletes: nobody waits for long, and no message is lost."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.outbox.rows import lease, outbox, put, waiting, with_broker
from tests.races.two import Other, holding, rival, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, execute, make_job, make_worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"


def confirm(ids, lock_id, using=ENGINE):
    return transitions.confirm_outbox(ids, lock_id=lock_id, using=using)


def test_of_two_relays_each_takes_what_the_other_has_not():
    ids = {id_ for _, id_ in waiting(6)}
    with holding():
        _, first = lease(3)
        _, second = Other(lambda: lease(9, using=ENGINE)).answer()
    assert {row.id for row in first} | {row.id for row in second} == ids
    assert len(first) + len(second) == 6


def test_four_relays_lease_two_thousand_messages_once_each():
    rows.make_jobs(2000)
    execute(
        "INSERT INTO turno.outbox_messages (job_id, dispatch_id, queue) SELECT id, dispatch_id, queue FROM turno.jobs"
    )

    def drain():
        taken = []
        while found := lease(100, using=ENGINE)[1]:
            taken += [row.id for row in found]
        return taken

    taken = [id_ for ids in together([drain] * 4) for id_ in ids]
    assert len(taken) == len(set(taken)) == 2000


def test_a_lease_steps_over_a_message_whose_job_is_being_deleted():
    gone, made = make_job(State.CANCELLED), make_job()
    put(gone)
    kept = put(made)
    with holding():
        transitions.delete([gone.id])
        assert [row.id for row in Other(lambda: lease(using=ENGINE)).answer()[1]] == [kept]
    assert [row["id"] for row in outbox()] == [kept]


def test_a_message_is_not_seen_before_its_job_is_committed():
    made = make_job(State.FAILED)
    with with_broker(), holding():
        transitions.requeue([made.id])
        assert Other(lambda: lease(using=ENGINE)).answer()[1] == []
    [row] = lease()[1]
    assert (row.job, row.token) == (made.id, rows.job(made.id)["dispatch_id"])


@pytest.mark.parametrize("roll_back", [False, True], ids=["commits", "rolls back"])
def test_a_confirmation_waits_for_nobody_who_has_the_job_and_says_nothing_of_it_then(roll_back):
    [(made, id_)] = waiting(1)
    lock_id, _ = lease()
    with holding(roll_back=roll_back):
        transitions.cancel([made.id])
        assert Other(lambda: confirm([id_], lock_id)).answer() == 1
    assert outbox() == []
    assert rows.job(made.id)["announced_at"] is None  # whoever looks for lost messages counts from its enqueueing


def test_a_confirmation_waits_for_nobody_who_has_the_message_and_leaves_it():
    [(_, id_)] = waiting(1)
    lock_id, _ = lease()
    with rival() as other:
        other.execute("SELECT 1 FROM turno.outbox_messages FOR UPDATE")
        assert Other(lambda: confirm([id_], lock_id)).answer() == 0
        for act in (
            lambda: transitions.return_outbox([id_], lock_id=lock_id, using=ENGINE),
            lambda: transitions.postpone_outbox([(id_, "no")], lock_id=lock_id, base=1, cap=9, using=ENGINE),
        ):
            assert Other(act).answer() == 0
    assert outbox()[0]["lock_id"] == lock_id


def test_a_claim_that_meets_the_confirmation_waits_for_it_and_starts_the_job():
    [(made, id_)] = waiting(1)
    lock_id, _ = lease()
    with holding():
        confirm([id_], lock_id, "default")
        claim = Other(lambda: transitions.claim([(made.id, made.token, 1)], **claimant(), using=ENGINE))
        claim.is_waiting()
    assert len(claim.answer()) == 1


def test_a_relay_that_was_too_late_takes_nothing_from_the_one_that_came_after_it():
    [(_, id_)] = waiting(1)
    late, _ = lease(lasts=-1)
    with holding():
        owner, _ = lease()
        assert Other(lambda: confirm([id_], late)).answer() == 0
    assert [row["lock_id"] for row in outbox()] == [owner]


@pytest.mark.parametrize("act", [transitions.defer, transitions.park_unknown])
@pytest.mark.parametrize("roll_back", [False, True], ids=["commits", "rolls back"])
def test_what_is_put_aside_is_waited_for_since_its_message_is_acknowledged_then(act, roll_back):
    made = make_job()
    with holding(roll_back=roll_back):
        transitions.cancel([made.id])
        late = Other(lambda: act([(made.id, made.token)], using=ENGINE))
        late.is_waiting()
    assert late.answer() == ({made.id} if roll_back else set())
    assert rows.state(made.id) == (State.SCHEDULED if roll_back else State.CANCELLED)


@pytest.mark.parametrize("act", [transitions.defer, transitions.park_unknown])
def test_a_claim_and_a_putting_aside_of_one_message_end_as_one_of_them(act):
    made = make_job()
    with holding():
        assert transitions.claim([(made.id, made.token, 1)], **claimant())
        late = Other(lambda: act([(made.id, made.token)], using=ENGINE))
        late.is_waiting()
    assert late.answer() == set()
    assert [step[2] for step in rows.edges(made.id)] == ["claimed"]


def test_two_leaders_open_the_gate_of_one_job_once():
    made = make_job(State.SCHEDULED, waiting_for="unknown_type", gate="a.type", type="a.type")
    make_worker(queues={"default": 1}, types=["a.type"])
    try:
        with with_broker():
            opened = together([lambda: transitions.open_unknown(limit=9, silent_after=15, using=ENGINE)] * 4)
    finally:
        execute("DELETE FROM turno.workers")
    assert sorted(opened) == [0, 0, 0, 1]
    assert [message["dispatch_id"] for message in outbox()] == [rows.job(made.id)["dispatch_id"]]
    assert len(rows.history(made.id)) == 1


def test_two_leaders_announce_one_job_again_once():
    made = make_job(announced_at=ago(60))

    def again():
        return transitions.reannounce_oldest("default", age=10, limit=9, using=ENGINE)

    with holding():
        assert transitions.reannounce_oldest("default", age=10, limit=9) == 1
        assert Other(again).answer() == 0
    assert sum(together([again] * 4)) == 0
    assert [message["dispatch_id"] for message in outbox()] == [made.token]


def test_a_search_for_lost_messages_steps_over_a_job_that_is_being_claimed():
    made = make_job(announced_at=ago(60))
    with holding():
        transitions.claim([(made.id, made.token, 1)], **claimant())
        late = Other(lambda: transitions.reannounce_oldest("default", age=10, limit=9, using=ENGINE))
        assert late.answer() == 0
    assert outbox() == []


@pytest.mark.parametrize("roll_back", [False, True], ids=["commits", "rolls back"])
def test_a_message_that_the_broker_gave_up_waits_to_hear_what_becomes_of_its_job(roll_back):
    made = make_job(announced_at=ago(60))
    with holding(roll_back=roll_back):
        transitions.cancel([made.id])
        late = Other(lambda: transitions.reannounce([(made.id, made.token)], using=ENGINE))
        late.is_waiting()
    assert late.answer() == roll_back
    assert [message["dispatch_id"] for message in outbox()] == [made.token] * roll_back
