"""The breaker of a type as a gate: opened once for all, its jobs parked once each and woken when it has closed."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.transitions import WORK, Wanted
from tests.transitions import COMMITTED, rows
from tests.transitions.breakers import TYPE, circuit, claimed, opened, park, parked, reason
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, ahead, execute, make_job, make_jobs, make_worker, select
from tests.transitions.unserved import TIMES, unserved

pytestmark = [COMMITTED, pytest.mark.usefixtures("served")]


def test_a_trip_opens_the_breaker_for_all_and_says_why(using):
    assert transitions.trip([reason(), reason("b.type")], using=using).opened == {TYPE, "b.type"}
    row = circuit()
    assert (row["state"], row["executions"], row["failures"], row["span"], row["due"]) == ("open", 10, 6, 30.0, False)


def test_what_is_open_or_half_open_is_not_opened_again(using):
    opened()
    opened("b.type", state="half_open", retry_at=None, probe_job_id=uuid4(), probe_deadline=ahead(9))
    before = [circuit(), circuit("b.type")]
    assert transitions.trip([reason(), reason("b.type")], using=using) == (frozenset(), {})
    assert [circuit(), circuit("b.type")] == before
    assert transitions.trip([], using=using) == (frozenset(), {})


def test_failures_from_before_the_breaker_closed_do_not_open_it(using):
    opened(state="closed", retry_at=None, closed_at=ago(10))
    refused = transitions.trip([reason(age=11.0)], using=using)
    assert refused.opened == frozenset()
    assert 10 <= refused.closed_for[TYPE] < 60
    assert circuit()["state"] == "closed"
    assert transitions.trip([reason(age=5.0)], using=using).opened == {TYPE}


def test_a_search_leaves_out_a_type_whose_breaker_is_open(using):
    opened()
    make_job(type=TYPE, priority=9)
    other = make_job(type="other")
    assert [claim.id for claim in claimed(using)] == [other.id]


@pytest.mark.parametrize("state", ["open", "half_open"])
def test_a_message_of_a_type_whose_breaker_is_not_closed_parks_its_job(using, state):
    probing = {"probe_job_id": uuid4(), "probe_deadline": ahead(9), "retry_at": None}
    opened(state=state, **probing if state == "half_open" else {})
    made = make_job(type=TYPE)
    wanted = [Wanted(made.id, made.token, 1, "default")]
    assert transitions.claim(wanted, types=[TYPE], **claimant(), using=using) == []
    assert transitions.left(wanted, types=[TYPE], using=using) == set()
    row = rows.job(made.id)
    assert (row["state"], row["waiting_for"], row["gate"], row["attempts_used"]) == ("Scheduled", "circuit", TYPE, 0)
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "circuit_open")]


def test_a_message_whose_breaker_closed_a_moment_ago_is_still_wanted(using):
    made = make_job(type=TYPE)
    assert transitions.park_circuit([(made.id, made.token)], types={TYPE}, using=using) == set()
    assert transitions.left([Wanted(made.id, made.token, 1, "default")], types=[TYPE], using=using) == {made.token}
    assert rows.state(made.id) == "Enqueued"
    assert transitions.park_circuit([], types=set(), using=using) == set()


def test_what_waits_is_parked_once_each_however_often_somebody_looks(using, ear):
    opened()
    make_jobs(450, type=TYPE)
    make_jobs(3, type="other")
    counts = []
    while moved := park(using):
        counts.append(moved)
    assert sum(counts) == 450
    assert max(counts) <= 100
    changes = select("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM turno.job_state_changes")
    assert changes == [{"n": 450, "jobs": 450}]
    assert {row["type"] for row in select("SELECT type FROM turno.jobs WHERE state = 'Enqueued'")} == {"other"}
    assert ear.heard() == []


def test_nothing_is_parked_in_a_queue_that_nobody_takes_from(using):
    opened()
    elsewhere, paused = make_job(type=TYPE, queue="elsewhere"), make_job(type=TYPE)
    execute("INSERT INTO turno.pauses (scope, value) VALUES ('queue', 'default')")
    assert park(using) == 0
    assert [rows.state(made.id) for made in (elsewhere, paused)] == ["Enqueued"] * 2


def test_what_a_closing_missed_is_found_later_by_priority_in_batches(using):
    opened(state="closed", retry_at=None)
    low, high = parked(), parked(priority=3)
    assert transitions.open_circuits(limit=1, using=using) == 1
    assert [rows.state(made.id) for made in (low, high)] == ["Scheduled", "Enqueued"]
    assert transitions.open_circuits(limit=9, using=using) == 1
    assert transitions.open_circuits(limit=9, using=using) == 0


def test_breakers_are_told_with_their_state_and_whether_their_time_has_come(using):
    opened()
    opened("b.type", retry_at=ahead(9))
    opened("c.type", state="closed", retry_at=None)
    found = [(TYPE, "open", True), ("b.type", "open", False), ("c.type", "closed", False)]
    assert transitions.breakers(using=using) == found


def test_what_nobody_in_its_queue_has_the_type_of_is_not_parked_for_the_breaker(using):
    make_worker(queues={"elsewhere": 4}, types=["other"])
    opened()
    made, here = make_job(type=TYPE, queue="elsewhere"), make_job(type=TYPE)
    assert park(using) == 1
    assert [rows.state(one.id) for one in (made, here)] == ["Enqueued", "Scheduled"]


def test_what_is_parked_goes_back_to_a_queue_where_nobody_has_had_the_type_for_long(using, ear):
    make_worker(queues={"elsewhere": 4}, types=["other"])
    opened()
    here, there = parked(), [parked(queue="elsewhere") for _ in range(3)]
    unserved(queue="elsewhere", since=10)
    told = TIMES | {"unserved_for": 15.0, "using": using}
    assert transitions.return_unserved(limit=2, **told) == 0  # a worker that is started again is back before
    execute(f"UPDATE turno.unserved_types SET since = {ago(20)}")
    assert [transitions.return_unserved(limit=2, **told) for _ in range(3)] == [2, 1, 0]
    assert {rows.state(one.id) for one in there} == {"Enqueued"}
    assert rows.state(here.id) == "Scheduled"
    assert {*ear.heard()} == {(WORK, "elsewhere")}
    assert park(using) == 0
