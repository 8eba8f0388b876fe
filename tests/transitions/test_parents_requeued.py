"""Continuations and people: parents and children that are requeued."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.transitions import COMMITTED, rows
from tests.transitions.children import child, end, run, running
from tests.transitions.rows import make_job, make_letter

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
BAD = [State.FAILED, State.CANCELLED]


def requeue(*ids, using="default"):
    return [verdict.state for verdict in transitions.requeue(ids, actor="ana", using=using)]


def fallen(to=State.FAILED, **options):
    """A parent that ended badly and the child that fell with it."""
    parent = running()
    id_ = child(parent, **options)
    end(parent, to=to)
    assert rows.state(id_) == "Cancelled"
    return parent, id_


@pytest.mark.parametrize("to", BAD)
def test_a_child_whose_parents_have_all_ended_runs_however_they_ended(using, to):
    _parent, id_ = fallen(to)
    assert requeue(id_, using=using) == [State.ENQUEUED]
    assert rows.edges(id_)[-1] == ("Cancelled", "Enqueued", "requeued")


def test_a_child_whose_parent_was_deleted_runs(using):
    parent, id_ = fallen()
    transitions.delete([parent])
    assert requeue(id_, using=using) == [State.ENQUEUED]


def test_one_whose_parent_runs_again_is_parked_at_once(using):
    parent, id_ = fallen()
    assert requeue(parent) == [State.ENQUEUED]
    assert rows.state(id_) == "Cancelled"
    assert requeue(id_, using=using) == [State.SCHEDULED]
    row = rows.job(id_)
    assert (row["waiting_for"], row["gate"], row["dispatch_id"]) == ("parents", str(parent), None)
    assert rows.edges(id_)[-2:] == [("Cancelled", "Enqueued", "requeued"), ("Enqueued", "Scheduled", "parked")]
    run(parent, using=using)
    assert rows.state(id_) == "Enqueued"


def test_parent_and_child_in_one_call_wait_for_each_other_as_at_first(using):
    parent, id_ = fallen()
    assert requeue(parent, id_, using=using) == [State.ENQUEUED, State.SCHEDULED]
    run(parent, to=State.FAILED, using=using)
    assert rows.state(id_) == "Cancelled", "its policy still holds for what fails from now on"


def test_what_had_failed_when_it_was_requeued_cancels_it_no_more_and_what_fails_later_does(using):
    bad, left, right = running(), running(), running()
    one, two = child(bad, left), child(bad, right)
    end(bad, to=State.FAILED)
    assert requeue(one, two, using=using) == [State.SCHEDULED, State.SCHEDULED]
    end(left, using=using)
    end(right, to=State.FAILED, using=using)
    assert (rows.state(one), rows.state(two)) == ("Enqueued", "Cancelled")


def test_a_child_that_failed_by_itself_waits_again_where_its_parent_runs_again(using):
    parent = running()
    id_ = child(parent, policy="run")
    end(parent, to=State.FAILED)
    run(id_, to=State.FAILED)
    requeue(parent)
    assert requeue(id_, using=using) == [State.SCHEDULED]


def test_a_letter_that_is_requeued_parks_its_job_as_well(using):
    parent = running()
    id_ = child(parent, policy="run")
    end(parent, to=State.FAILED)
    run(id_, to=State.FAILED)
    requeue(parent)
    [letter] = rows.letters(id_)
    [verdict] = transitions.requeue_letters([letter["id"]], using=using)
    assert (verdict.applied, verdict.state, rows.state(id_)) == (True, State.SCHEDULED, "Scheduled")


def test_a_parent_that_runs_again_before_anybody_looked_at_its_child_is_waited_for(using):
    parent = make_job(State.FAILED)
    make_letter(parent)
    id_ = child(parent.id)
    requeue(parent.id)
    assert transitions.check_parents([id_], using=using) == 0
    assert (rows.state(id_), rows.job(id_)["gate"]) == ("Scheduled", str(parent.id))
    run(parent.id, using=using)
    assert rows.state(id_) == "Enqueued"


def test_a_fallen_line_that_is_requeued_whole_runs_in_its_order(using):
    parent = running()
    son = child(parent)
    grandson = child(son)
    end(parent, to=State.FAILED)
    assert requeue(grandson, son, parent, using=using) == [State.SCHEDULED, State.SCHEDULED, State.ENQUEUED]
    for id_, then in ((parent, son), (son, grandson)):
        assert rows.state(then) == "Scheduled"
        run(id_, using=using)
        assert rows.state(then) == "Enqueued"


def test_an_instant_that_was_asked_for_at_first_is_no_hindrance_after_a_requeue(using):
    parent, id_ = fallen(delay=3600.0)
    requeue(parent)
    requeue(id_, using=using)
    run(parent, using=using)
    assert rows.state(id_) == "Enqueued"
