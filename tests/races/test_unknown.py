"""Parking and failing what nobody knows, against claims, cancels, workers that come, and another leader."""

import pytest

from jobs import presence, transitions
from jobs.states import State
from tests.outbox.rows import outbox, with_broker
from tests.races.two import Other, holding, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import execute, make_job
from tests.transitions.unserved import fail, park, parked, unserved, watch, worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"


@pytest.fixture(autouse=True)
def served_without_the_type(committed):
    """The queue is served, and since yesterday by nobody who has the type."""
    worker()
    unserved(since=86_400)
    yield
    execute("DELETE FROM turno.workers")


def open_(using="default"):
    return transitions.open_unknown(limit=9, silent_after=15, using=using)


def comes(using="default"):
    """A worker that has the type registers."""
    who = presence.Presence(
        id=claimant()["worker_id"], name="w", host="h", boot_id="b", pid_namespace="1", pid=9, pid_started="1",
        version="1", queues={"default": 2}, types=["a.type"],
    )  # fmt: skip
    presence.beat(who, using=using)


def test_what_is_being_claimed_is_not_parked():
    made = make_job(type="a.type")
    with holding():
        assert transitions.claim_next([("default", 1)], types=["a.type"], **claimant())
        assert Other(lambda: park(ENGINE)).answer() == []
    assert park() == []
    assert rows.state(made.id) == State.PROCESSING


def test_a_claim_that_meets_the_parking_finds_nothing_and_the_job_waits_on():
    made = make_job(type="a.type")
    with holding():
        assert park() == [made.id]
        search = Other(
            lambda: transitions.claim_next([("default", 1)], types=["a.type"], **claimant(), using=ENGINE)
        ).answer()
        named = Other(lambda: transitions.claim([(made.id, made.token, 1)], **claimant(), using=ENGINE))
        named.is_waiting()
    assert (search, named.answer()) == ([], [])
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "parked")]


@pytest.mark.parametrize("first", ["the worker", "the parking"])
def test_a_job_that_is_parked_while_its_worker_comes_is_back_with_the_next_look(first):
    """Whichever of the two is committed first, neither saw the other."""
    execute("INSERT INTO turno.job_types (name) VALUES ('a.type')")
    made = make_job(type="a.type")
    with holding():
        winner, loser = (comes, park) if first == "the worker" else (park, comes)
        winner()
        Other(lambda: loser(ENGINE)).answer()
    assert rows.state(made.id) == State.SCHEDULED
    assert open_() == 1
    [claimed] = transitions.claim_next([("default", 1)], types=["a.type"], **claimant())
    assert claimed.id == made.id
    assert [step[2] for step in rows.edges(made.id)] == ["parked", "gate_opened", "claimed"]
    assert claimed.execution == 1


def test_a_worker_that_is_there_before_the_look_is_seen_by_it_whatever_the_book_says():
    make_job(type="a.type")
    parked()
    comes()
    assert (park(), fail()) == ([], [])


def test_two_leaders_park_a_job_once():
    mades = [make_job(type="a.type") for _ in range(6)]
    answers = together([lambda: park(ENGINE)] * 4)
    assert sorted(id_ for answer in answers for id_ in answer) == sorted(made.id for made in mades)
    assert [len(rows.history(made.id)) for made in mades] == [1] * 6


def test_two_leaders_fail_a_job_once():
    mades = [parked() for _ in range(6)]
    with with_broker():
        answers = together([lambda: fail(ENGINE)] * 4)
    assert sorted(id_ for answer in answers for id_ in answer) == sorted(made.id for made in mades)
    assert [(len(rows.history(m.id)), len(rows.letters(m.id)), len(outbox(m.id))) for m in mades] == [(1, 1, 1)] * 6


def test_two_leaders_keep_one_book():
    for n in range(20):
        make_job(type=f"type.{n}")
    execute("UPDATE turno.unserved_types SET seen_at = seen_at - interval '1 hour', since = since - interval '1 hour'")
    together([lambda: watch(ENGINE)] * 4)
    found = rows.select("SELECT type FROM turno.unserved_types")
    assert {row["type"] for row in found} == {f"type.{n}" for n in range(20)}


def test_a_gate_that_is_being_opened_lets_nobody_fail_behind_it():
    made = parked()
    with holding():
        comes()
        assert open_() == 1
        assert Other(lambda: fail(ENGINE)).answer() == []
    assert fail() == []
    assert rows.state(made.id) == State.ENQUEUED
    assert rows.letters(made.id) == []


def test_what_is_failing_is_not_opened():
    made = parked()
    with holding():
        assert fail() == [made.id]
        Other(lambda: comes(ENGINE)).answer()
        assert Other(lambda: open_(ENGINE)).answer() == 0
    assert open_() == 0
    assert rows.edges(made.id) == [("Scheduled", "Failed", "unknown_type")]


@pytest.mark.parametrize("roll_back", [False, True], ids=["commits", "rolls back"])
def test_what_is_being_cancelled_does_not_fail_beside_it(roll_back):
    made = parked()
    with holding(roll_back=roll_back):
        transitions.cancel([made.id])
        assert Other(lambda: fail(ENGINE)).answer() == []
    assert fail() == ([made.id] if roll_back else [])
    assert len(rows.history(made.id)) == 1


def test_a_cancel_that_meets_the_end_waits_and_says_that_it_has_failed():
    made = parked()
    with holding():
        fail()
        late = Other(lambda: transitions.cancel([made.id], using=ENGINE))
        late.is_waiting()
    [verdict] = late.answer()
    assert (verdict.applied, verdict.state) == (False, State.FAILED)
