"""Three that delete what is old, beside all that happens to jobs meanwhile: nobody waits for each other for ever,
nothing that is young goes, nothing that is old stays."""

import threading
from random import Random
from time import monotonic

import pytest
from django.db import IntegrityError

from jobs import transitions
from jobs.conf import overridden
from jobs.ids import new_id
from jobs.outcomes import Ending
from jobs.states import Outcome, Reason, State
from jobs.transitions.insert import insert
from jobs.transitions.parents import UnknownParents
from tests.kit import finished
from tests.races.two import Other, holding
from tests.transitions import COMMITTED
from tests.transitions.edges import CALLER, claimant
from tests.transitions.flow import new
from tests.transitions.rows import ago, execute, job, make_job, make_letter, select
from workers.retention import Retention

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
MANY = 2000
SHORT = dict.fromkeys(("succeeded", "cancelled", "failed", "dead_letters"), "1h")
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
OLD = "SELECT id FROM turno.jobs WHERE type = 'old.type' AND finished_at < now() - interval '1 day'"
SOME = f"{OLD} ORDER BY random() LIMIT 3"
LATELY = "SELECT count(*) AS n FROM turno.jobs WHERE type <> 'old.type'"
PATIENCE = 120.0  # seconds


@pytest.fixture(autouse=True)
def short(committed):
    with overridden(retention=SHORT | {"batch_size": 50}):
        yield
    for table in ("counters", "dead_letters"):
        execute(f"DELETE FROM turno.{table}")


def until_nothing_is_old():
    retention, deadline = Retention(), monotonic() + PATIENCE
    while select(f"{OLD} LIMIT 1"):
        retention.run_once()
        assert monotonic() < deadline, "something old stays"


class Life:
    """What happens meanwhile, until the old ones are gone; `made` counts the jobs that are young."""

    def __init__(self, over):
        self._over = over
        self.made = 0

    def works(self):
        """Claims and ends, well or badly, what is there."""
        rng = Random(1)
        while not self._over.is_set():
            found = transitions.claim_next(
                [("default", 5)], types=["test.echo", "old.type"], **claimant(), using=ENGINE
            )
            ends = [
                Ending(one.id, one.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED)
                if rng.random() < 0.7
                else Ending(one.id, one.dispatch_id, State.CANCELLED, Outcome.CANCELLED, Reason.CANCELLED)
                for one in found
            ]
            transitions.settle(ends, worker_id=CALLER, using=ENGINE)
            self._over.wait(0.005)

    def enqueues(self):
        """Jobs, some of which come after an old one, or after each other."""
        rng, last = Random(2), None
        while not self._over.is_set():
            old = [row["id"] for row in select(SOME)]
            after = [
                *rng.sample(old, min(len(old), rng.randint(0, 2))),
                *([last] if last and rng.random() < 0.5 else []),
            ]
            last = new_id()
            try:
                insert([new(last, type="test.echo", after=after)], using=ENGINE)
            except (UnknownParents, IntegrityError):  # one was deleted up to it: nothing was accepted
                last = None
                continue
            self.made += 1
            transitions.check_parents([last], using=ENGINE)

    def requeues(self):
        """People take old jobs back, cancel them again, and delete others, in any order."""
        rng = Random(3)
        while not self._over.is_set():
            some = [row["id"] for row in select(SOME)]
            rng.shuffle(some)
            act = rng.choice([transitions.requeue, transitions.delete, transitions.cancel])
            act(some, using=ENGINE)


@pytest.mark.parametrize("many", [MANY, pytest.param(40_000, marks=pytest.mark.longo)])
def test_three_runners_beside_all_that_happens_leave_nothing_old_and_take_nothing_young(many):
    finished.make(many)
    execute("UPDATE turno.jobs SET queue = 'default'")
    [before] = select(DEADLOCKS)
    over = threading.Event()
    life = Life(over)
    others = [Other(act) for act in (life.works, life.works, life.enqueues, life.requeues)]
    runners = [Other(until_nothing_is_old) for _ in range(3)]
    try:
        for runner in runners:
            runner._answer.result(PATIENCE)
    finally:
        over.set()
    for one in [*runners, *others]:
        one.answer()
    assert select(DEADLOCKS) == [before]
    assert (select(OLD), select(LATELY)) == ([], [{"n": life.made}])
    assert life.made > 0
    left = [row["id"] for row in select("SELECT id FROM turno.jobs WHERE waiting_for = 'parents'")]
    transitions.check_parents(left, using=ENGINE)
    waiting = "SELECT j.id FROM turno.jobs AS j WHERE waiting_for = 'parents' AND NOT EXISTS (" + (
        "SELECT FROM turno.job_dependencies AS d JOIN turno.jobs AS p ON p.id = d.parent_id "
        "WHERE d.child_id = j.id AND p.finished_at IS NULL)"
    )
    assert select(waiting) == []


def purge(**options):
    kept = {"age": 100.0, "letters": 1000.0, "limit": 9, "using": ENGINE} | options
    return transitions.purge(State.FAILED, **kept).jobs


def test_two_that_delete_parents_and_children_of_each_other_wait_in_one_order():
    """By the foreign keys, job by job, each would soon have the row that the other wants."""
    first, second, *ours = [make_job(State.FAILED, finished_at=ago(200), id=new_id()).id for _ in range(4)]
    execute("INSERT INTO turno.job_dependencies (child_id, parent_id) VALUES (%s, %s)", second, ours[0])
    execute("INSERT INTO turno.job_dependencies (child_id, parent_id) VALUES (%s, %s)", first, ours[1])
    [before] = select(DEADLOCKS)
    with holding():  # as another one does who has these two, row by row
        execute("SELECT FROM turno.jobs WHERE id = ANY(%s) FOR UPDATE", ours)
        execute("DELETE FROM turno.job_dependencies WHERE parent_id = %s", ours[0])
        purges = Other(purge)
        purges.is_waiting()
        execute("DELETE FROM turno.job_dependencies WHERE parent_id = %s", ours[1])
        execute("DELETE FROM turno.jobs WHERE id = ANY(%s)", ours)
    assert purges.answer() == 2
    assert (select(DEADLOCKS), select("SELECT * FROM turno.job_dependencies")) == ([before], [])


def test_what_somebody_has_locked_is_passed_over_and_goes_the_next_time():
    locked, free = (make_job(State.FAILED, finished_at=ago(200)) for _ in range(2))
    with holding():
        make_letter(locked)  # a foreign key holds its job
        execute("SELECT FROM turno.jobs WHERE id = %s FOR UPDATE", locked.id)
        assert Other(purge).answer() == 1
        execute("DELETE FROM turno.dead_letters")
    assert (job(free.id), job(locked.id) is None) == (None, False)
    assert purge() == 1


def test_a_child_that_comes_between_the_look_and_the_lock_keeps_its_parent(monkeypatch):
    parent = make_job(State.FAILED, finished_at=ago(200)).id
    module = transitions.purge.__globals__
    look = module["_look"]

    def slow(cursor, *args):
        found = look(cursor, *args)
        Other(lambda: insert([new(new_id(), after=[parent])], using=ENGINE)).answer()
        return found

    monkeypatch.setitem(module, "_look", slow)
    assert purge() == 0
    assert job(parent) is not None
