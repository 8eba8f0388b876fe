"""The leader's look: stored each minute, told in the log when it changes, looked at again before anything is said."""

import pytest

from jobs import invariants, queries
from jobs.ids import new_id
from jobs.invariants import Checked, Finding, Promise
from tests.transitions.flow import enqueue
from tests.transitions.rows import ago, execute, make_worker
from workers.promises import INTERVAL, SOON, Promises, _tell
from workers.routines import services

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "engine"])


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def routine(clean_tables):
    make_worker(queues={"default": 4}, types=["a.type"], started_at=ago(3600))
    clock = Clock()
    made = Promises(clock)
    made.clock = clock
    return made


def said(caplog):
    return [(record.message, record.invariant) for record in caplog.records if record.message.startswith("promise.")]


def test_a_house_in_order_is_told_each_minute_and_nothing_is_logged(routine, caplog):
    assert routine.run_once() == 0

    last = queries.promises().last
    assert (last.broken, last.unanswered, last.attended) == ((), (), True)
    assert routine.interval() == INTERVAL
    assert said(caplog) == []


def test_what_is_broken_is_logged_once_and_so_is_its_end(routine, caplog):
    id_ = new_id()
    enqueue(id_)
    execute("DELETE FROM turno.job_state_changes")
    routine.run_once()
    routine.run_once()
    assert [broken.examples for broken in queries.promises().last.broken] == [(str(id_),)]
    execute("DELETE FROM turno.jobs")
    routine.run_once()

    assert said(caplog) == [("promise.broken", "history_is_whole"), ("promise.kept_again", "history_is_whole")]
    assert caplog.records[0].examples == [str(id_)]


def test_what_may_only_be_late_is_looked_at_again_before_it_is_told(routine, caplog):
    enqueue(new_id(), delay=3600.0)
    execute("UPDATE turno.jobs SET run_at = now() - interval '1 hour'")
    looks = 0
    while queries.promises().last is None:
        routine.run_once()
        looks += 1
        wait = routine.interval()
        routine.clock.now += wait

    assert looks > 2
    assert wait == INTERVAL
    assert [broken.name for broken in queries.promises().last.broken] == ["due_is_enqueued"]
    assert said(caplog) == [("promise.broken", "due_is_enqueued")]


def test_what_was_only_late_is_never_told(routine, caplog):
    enqueue(new_id(), delay=3600.0)
    execute("UPDATE turno.jobs SET run_at = now() - interval '1 hour'")
    routine.run_once()
    assert routine.interval() == SOON
    execute("UPDATE turno.jobs SET run_at = now() + interval '1 hour'")
    routine.clock.now += SOON
    routine.run_once()

    assert queries.promises().last.broken == ()
    assert said(caplog) == []


def test_what_was_not_asked_is_not_said_to_be_kept_again(routine, caplog):
    usual = {"unanswered": ("fired_once",), "attended": False, "unsure": False, "seconds": 0.1}
    names = ("due_is_enqueued", "fired_once", "has_an_owner")
    found = tuple(Finding(name, Promise.LOST, 1, (), "", "") for name in names)
    invariants.keep(Checked(found, **usual))
    unasked = Checked((), **usual)

    _tell(unasked, invariants.keep(unasked))

    assert said(caplog) == [("promise.kept_again", "has_an_owner")]


def test_it_is_a_routine_of_the_leader():
    assert services()["promises"].exclusive
