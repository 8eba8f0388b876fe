"""Continuations against parents that end at that very moment, people, retention and each other."""

from functools import partial
from threading import Event
from uuid import UUID

import pytest
from django.db import IntegrityError

from jobs import transitions
from jobs.enqueue import enqueue
from jobs.errors import Invalid
from jobs.states import State
from jobs.transitions import parents
from tests.jobs.enqueue_types import registered
from tests.races.two import Other, holding, is_free
from tests.transitions import COMMITTED, rows
from tests.transitions.children import child, end, run, running
from tests.transitions.edges import claimant
from tests.transitions.rows import make_job, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"


def check(*ids: UUID) -> int:
    return transitions.check_parents(ids, using=ENGINE)


def test_who_enqueues_locks_no_parent_and_waits_for_none():
    parent = running()
    with holding():
        id_ = child(parent)
        assert is_free(parent)
        Other(lambda: end(parent, using=ENGINE)).answer()
    assert rows.state(id_) == "Scheduled"
    assert check(id_) == 1
    assert rows.state(id_) == "Enqueued"


def test_who_looks_at_a_child_waits_for_a_parent_that_is_ending():
    parent = running()
    id_ = child(parent)
    with holding():
        end(parent)
        look = Other(lambda: check(id_))
        look.is_waiting()
    look.answer()
    assert rows.state(id_) == "Enqueued"
    assert [step[2] for step in rows.edges(id_)] == ["created", "gate_opened"]


def test_so_it_does_for_a_parent_that_is_to_be_looked_at_as_a_child_in_the_same_call():
    son = child(make_job(State.SUCCEEDED).id)
    check(son)
    grandson = []

    def late():
        grandson.append(child(son, using=ENGINE))
        return check(son, *grandson)

    with holding():
        run(son)
        look = Other(late)
        look.is_waiting()
    assert look.answer() == 1
    assert rows.state(grandson[0]) == "Enqueued"


def test_a_parent_that_ends_waits_for_who_looks_at_its_child_and_then_opens_it():
    parent = running()
    id_ = child(parent)
    with holding():
        assert transitions.check_parents([id_]) == 0
        ends = Other(lambda: end(parent, using=ENGINE))
        ends.is_waiting()
    ends.answer()
    assert rows.state(id_) == "Enqueued"


@pytest.mark.parametrize("second", [State.SUCCEEDED, State.FAILED])
@pytest.mark.parametrize("first", [State.SUCCEEDED, State.FAILED])
def test_of_two_parents_that_end_at_once_the_second_sees_the_first(first, second):
    one, two = running(type="one"), running(type="two")  # of one type the second would wait for the first's metrics
    id_ = child(one, two)
    check(id_)
    with holding():
        end(one, to=first)
        ends = Other(lambda: end(two, to=second, using=ENGINE))
        ends.is_waiting()
    ends.answer()
    assert rows.state(id_) == ("Enqueued" if first is second is State.SUCCEEDED else "Cancelled")
    assert len(rows.edges(id_)) == 2


def test_who_searched_for_work_while_a_parent_was_looked_at_is_told_to_search_again(ear):
    """What is locked is passed over by a search."""
    parent, soon = make_job(), make_job(State.SCHEDULED, run_at=rows.ago(1)).id
    id_ = child(parent.id, soon)
    with holding():
        transitions.check_parents([id_])
        search = partial(transitions.claim_next, [("default", 1)], types=["test.echo"], **claimant(), using=ENGINE)
        assert Other(search).answer() == []
        assert Other(lambda: transitions.promote(limit=9, using=ENGINE)).answer() == 0
        ear.heard()
    assert sorted(ear.heard()) == [("turno_due", ""), ("turno_work", "default")]
    assert [claim.id for claim in search()] == [parent.id]
    assert transitions.promote(limit=9) == 1


def test_a_child_that_is_requeued_while_its_parent_ends_waits_for_that_end():
    bad, parent = make_job(State.FAILED).id, running()
    id_ = child(bad, parent)
    check(id_)
    assert rows.state(id_) == "Cancelled"
    with holding():
        end(parent)
        again = Other(lambda: transitions.requeue([id_], using=ENGINE))
        again.is_waiting()
    assert again.answer()[0].state is State.ENQUEUED


def test_a_parent_that_ends_while_its_child_is_requeued_opens_it():
    bad, parent = make_job(State.FAILED).id, running()
    id_ = child(bad, parent)
    check(id_)
    with holding():
        assert transitions.requeue([id_])[0].state is State.SCHEDULED
        ends = Other(lambda: end(parent, using=ENGINE))
        ends.is_waiting()
    ends.answer()
    assert rows.state(id_) == "Enqueued"


def test_a_letter_that_is_requeued_while_the_parent_ends_waits_for_that_end():
    parent = make_job(State.FAILED).id
    id_ = child(parent, policy="run")
    check(id_)
    run(id_, to=State.FAILED)
    [letter] = rows.letters(id_)
    transitions.requeue([parent])
    with holding():
        run(parent)
        again = Other(lambda: transitions.requeue_letters([letter["id"]], using=ENGINE))
        again.is_waiting()
        assert is_free(id_), "it waits for the parent before it has the child"
    assert again.answer()[0].state is State.ENQUEUED


def test_a_parent_that_is_requeued_while_its_child_is_looked_at_is_waited_for():
    parent = make_job(State.FAILED).id
    id_ = child(parent)
    with holding():
        transitions.requeue([parent])
        look = Other(lambda: check(id_))
        look.is_waiting()
    assert look.answer() == 0
    assert rows.state(id_) == "Scheduled"
    run(parent)
    assert rows.state(id_) == "Enqueued"


def test_a_child_that_is_cancelled_while_its_parent_ends_stays_cancelled():
    parent = running()
    id_ = child(parent)
    check(id_)
    with holding():
        transitions.cancel([id_])
        ends = Other(lambda: end(parent, using=ENGINE))
        ends.is_waiting()
    ends.answer()
    assert rows.edges(id_)[1:] == [("Scheduled", "Cancelled", "cancelled")]


def test_retention_waits_for_nobody_and_takes_no_parent_of_a_waiting_child():
    parent = make_job(State.SUCCEEDED, finished_at=rows.ago(1000)).id
    id_ = child(parent, running())
    keep = {"age": 10.0, "letters": 0.0, "limit": 9, "using": ENGINE}
    with holding():
        transitions.check_parents([id_])
        assert Other(lambda: transitions.purge(State.SUCCEEDED, **keep)).answer().jobs == 0
    assert rows.job(parent) is not None


def test_a_parent_that_is_deleted_before_the_caller_commits_fails_that_commit():
    """Nothing was accepted then, and whoever enqueued is told."""
    parent = make_job(State.SUCCEEDED).id

    def enqueues_slowly():
        with holding():
            child(parent)
            Other(lambda: transitions.delete([parent], using=ENGINE)).answer()

    with pytest.raises(IntegrityError):
        enqueues_slowly()
    assert select("SELECT id FROM turno.jobs") == []


def test_where_the_commit_is_ours_the_caller_hears_that_there_is_no_such_job(monkeypatch):
    parent = make_job(State.SUCCEEDED).id
    announce, deleted = parents._announce, Event()

    def delete_first(cursor, children):
        announce(cursor, children)
        if not deleted.is_set():
            deleted.set()
            Other(lambda: transitions.delete([parent], using=ENGINE)).answer()

    monkeypatch.setattr(parents, "_announce", delete_first)
    with registered(), pytest.raises(Invalid) as refused:
        enqueue("test.any", after=[parent])
    assert list(refused.value.errors) == ["after.0"]
    assert select("SELECT id FROM turno.jobs") == []
