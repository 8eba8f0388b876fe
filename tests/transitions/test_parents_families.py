"""Continuations in numbers: long lines, many children, many parents, more than are looked at at once."""

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.states import State
from jobs.transitions import parents
from tests.transitions import COMMITTED, rows
from tests.transitions.children import chain, child, end, plant, running, states
from tests.transitions.rows import execute, make_jobs, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
WAITING = "SELECT id FROM turno.jobs WHERE waiting_for = 'parents' ORDER BY id"


def swept(**more):
    """The sweep until it opens nothing, and what it opened in all."""
    total, after = 0, ""
    while (done := transitions.open_parents(limit=500, after=after, unseen_for=0.0, **more)).opened:
        total, after = total + done.opened, done.after
    return total


def test_a_line_of_five_thousand_falls_at_once(using):
    parent = running()
    ids = chain(5000, parent)
    end(parent, to=State.FAILED, using=using)
    assert states(ids) == {"Cancelled": 5000}
    assert swept() == 0
    assert rows.history(ids[-1])[-1]["detail"] == str(ids[-2])


def test_so_it_does_when_clocks_differed_and_children_stand_before_their_parents(using, monkeypatch):
    monkeypatch.setattr(parents, "BATCH", 7)
    parent = running()
    turned = sorted((new_id() for _ in range(60)), reverse=True)
    plant(turned, list(zip(turned, [parent, *turned], strict=False)))
    end(parent, to=State.FAILED, using=using)
    assert states(turned) == {"Cancelled": 60}


def test_a_thousand_children_go_on_when_their_parent_ends(using, ear):
    parent = running()
    ids = sorted(new_id() for _ in range(1000))
    plant(ids, [(id_, parent) for id_ in ids])
    end(parent, using=using)
    assert states(ids) == {"Enqueued": 1000}
    assert len(select("SELECT DISTINCT dispatch_id FROM turno.jobs WHERE state = 'Enqueued'")) == 1000
    assert ear.heard() == [("turno_work", "default")]


def test_a_child_of_a_hundred_parents_goes_on_with_the_last_one(using):
    ids = [running() for _ in range(100)]
    id_ = child(*ids)
    for parent in ids[:-1]:
        end(parent, using=using)
    assert (rows.state(id_), rows.job(id_)["gate"]) == ("Scheduled", str(ids[-1]))
    end(ids[-1], using=using)
    assert rows.state(id_) == "Enqueued"


def test_many_parents_that_end_in_one_batch_open_a_child_once(using):
    ids = [running() for _ in range(100)]
    id_ = child(*ids)
    end(*ids, using=using)
    assert [step[2] for step in rows.edges(id_)] == ["created", "gate_opened"]


@pytest.fixture
def few_at_once(monkeypatch):
    """Ten in a statement, thirty in a transaction, fifty that are named to who listens."""
    for name, value in {"BATCH": 10, "AT_ONCE": 30, "FOUND": 80}.items():
        monkeypatch.setattr(parents, name, value)


@pytest.mark.parametrize("to", [State.SUCCEEDED, State.FAILED])
def test_of_more_than_are_looked_at_at_once_the_others_are_named_and_the_rest_is_the_sweeps(few_at_once, ear, to):
    parent = running()
    ids = sorted(new_id() for _ in range(100))
    plant(ids, [(id_, parent) for id_ in ids])
    end(parent, to=to)
    then = "Enqueued" if to is State.SUCCEEDED else "Cancelled"
    assert states(ids) == {then: 30, "Scheduled": 70}
    named = [payload.removeprefix("parents:") for channel, payload in ear.heard() if channel == "turno_gates"]
    assert len(named) == 50
    assert transitions.check_parents(named) == 50
    assert states(ids) == {then: 80, "Scheduled": 20}
    assert swept() == 20
    assert states(ids) == {then: 100}


def test_a_long_line_falls_piece_by_piece_where_it_is_longer_than_is_looked_at_at_once(few_at_once, ear):
    parent = running()
    ids = chain(300, parent)
    end(parent, to=State.FAILED)
    while named := [payload.removeprefix("parents:") for channel, payload in ear.heard() if channel == "turno_gates"]:
        transitions.check_parents(named)
    assert states(ids) == {"Cancelled": 300}


def test_the_sweep_finds_nothing_where_everybody_was_looked_at():
    first, second = running(), running()
    ids = [child(first, second) for _ in range(5)]
    transitions.check_parents(ids)
    end(first)
    assert transitions.open_parents(limit=100).opened == 0
    assert states(ids) == {"Scheduled": 5}


def test_the_sweep_opens_what_nobody_has_looked_at_once_it_is_old_enough(using):
    ids = [child(running()) for _ in range(3)] + [child(rows.make_job(State.SUCCEEDED).id) for _ in range(4)]
    assert transitions.open_parents(limit=100, unseen_for=60.0, using=using).opened == 0
    assert swept(using=using) == 4
    assert states(ids) == {"Scheduled": 3, "Enqueued": 4}
    assert select("SELECT id FROM turno.jobs WHERE waiting_for = 'parents' AND gate IS NULL") == []


def test_the_sweep_goes_from_gate_to_gate_and_begins_again_at_the_end(monkeypatch):
    """However many wait for parents that run, one call looks at so many gates, and the next goes on there."""
    monkeypatch.setattr("jobs.transitions.forgotten.GATES_LOOKED_AT", 4)
    fathers = sorted((running() for _ in range(10)), key=str)
    sons = {father: child(father) for father in fathers}
    transitions.check_parents(sons.values())
    for father in (fathers[0], fathers[5], fathers[9]):  # behind everybody's back
        execute("UPDATE turno.jobs SET state = 'Succeeded', finished_at = now(), worker_id = NULL, claim_id = NULL, "
                "lease_expires_at = NULL, claimed_at = NULL WHERE id = %s", father)  # fmt: skip
    opened, after = [], ""
    for _ in range(4):
        done = transitions.open_parents(limit=100, after=after)
        opened.append(done.opened)
        after = done.after
    assert opened == [1, 1, 1, 0]
    assert [rows.state(sons[fathers[n]]) for n in (0, 5, 9, 1)] == ["Enqueued", "Enqueued", "Enqueued", "Scheduled"]


def test_the_sweep_takes_no_more_than_its_limit_and_goes_on_where_it_was():
    parent = rows.make_job(State.SUCCEEDED).id
    ids = sorted(new_id() for _ in range(25))
    plant(ids, [(id_, parent) for id_ in ids])
    done = transitions.open_parents(limit=10)
    assert (done.opened, states(ids)) == (10, {"Enqueued": 10, "Scheduled": 15})
    assert transitions.open_parents(limit=100, after=done.after).opened == 15


def test_a_gate_that_is_no_job_stops_nobody():
    make_jobs(3, State.SCHEDULED, waiting_for="parents", gate="no job at all")
    assert swept() == 3
