"""Continuations: which parents a child may have, and when the rows of parents may go."""

import pytest
from django.db import IntegrityError

from jobs import transitions
from jobs.ids import new_id
from jobs.states import State
from jobs.transitions.insert import insert
from jobs.transitions.parents import UnknownParents
from tests.transitions import COMMITTED, rows
from tests.transitions.children import child, end, new, running
from tests.transitions.rows import ago, make_job, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


def test_unknown_parents_are_refused_and_so_are_those_of_another_owner():
    mine, theirs, gone = make_job(owner="ana").id, make_job(owner="rui").id, new_id()
    row = new(after=[mine, theirs, gone], owner="ana")
    with pytest.raises(UnknownParents) as refused:
        insert([row])
    assert refused.value.missing == {(row.id, theirs), (row.id, gone)}
    assert rows.job(row.id) is None
    assert select("SELECT * FROM turno.job_dependencies") == []


def test_an_owner_and_nobody_are_not_the_same():
    with pytest.raises(UnknownParents):
        insert([new(after=[make_job().id], owner="ana")])
    with pytest.raises(UnknownParents):
        insert([new(after=[make_job(owner="ana").id])])


def test_no_job_waits_for_itself():
    row = new()
    with pytest.raises(UnknownParents):
        insert([row._replace(after=(new_id(),))])
    with pytest.raises(IntegrityError):
        insert([row._replace(after=(row.id,))])


def test_who_answers_as_a_duplicate_or_a_repeat_gets_no_parents():
    active, key = child(unique_key="u"), {"idempotency_key": "k", "route": "r", "request_hash": "h"}
    first = child(**key)
    parent = running()
    [again, repeat] = insert([new(after=[parent], unique_key="u"), new(after=[parent], **key)])
    assert (again.id, again.duplicate, repeat.id, repeat.replayed) == (active, True, first, True)
    assert select("SELECT * FROM turno.job_dependencies") == []


def test_a_repeat_whose_parents_are_gone_by_now_is_answered_with_the_first():
    key = {"idempotency_key": "k", "route": "r", "request_hash": "h"}
    parent = make_job(State.SUCCEEDED).id
    first = child(parent, **key)
    transitions.check_parents([first])
    transitions.delete([parent])
    [repeat] = insert([new(after=[parent], **key)])
    assert (repeat.id, repeat.replayed) == (first, True)


def test_retention_keeps_what_a_waiting_child_names_and_nothing_longer(using):
    old = {"finished_at": ago(1000)}
    done, parent = make_job(State.SUCCEEDED, **old).id, running()
    id_ = child(done, parent)
    keep = {"age": 500.0, "letters": 0.0, "limit": 9, "using": using}
    assert transitions.purge(State.SUCCEEDED, **keep).jobs == 0
    transitions.check_parents([id_])
    assert transitions.purge(State.SUCCEEDED, **keep).jobs == 0
    end(parent)
    assert transitions.purge(State.SUCCEEDED, **keep).jobs == 1
    assert (rows.job(done), rows.state(id_)) == (None, "Enqueued")


@pytest.mark.parametrize(("to", "then"), [(State.SUCCEEDED, "Enqueued"), (State.FAILED, "Cancelled")])
def test_who_deletes_a_parent_looks_at_a_child_that_nobody_has_looked_at(using, to, then):
    parent = make_job(to).id
    id_ = child(parent)
    transitions.delete([parent], using=using)
    assert (rows.job(parent), rows.state(id_)) == (None, then)
