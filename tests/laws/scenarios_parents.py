"""Continuations: a child whose parents end while nobody holds a lock for it, and what falls with a parent."""

import threading
from collections.abc import Callable
from unittest import mock

from jobs import transitions
from jobs.ids import new_id
from jobs.states import State
from jobs.transitions import parents
from tests.laws.guards import keep
from tests.laws.scenarios_together import waits
from tests.outbox.rows import with_broker
from tests.races.two import Other, holding
from tests.transitions import rows
from tests.transitions.children import child, end, plant, run, running
from tests.transitions.rows import make_job

ENGINE = "engine"
FOR_EVER = "a child waits for ever: its parents have ended"


def meanwhile(first: Callable[[], object], second: Callable[[], object]) -> None:
    """The second begins while the first has not committed, and ends, or is seen waiting for it."""
    done = threading.Event()

    def tell() -> None:
        try:
            second()
        finally:
            done.set()

    with holding():
        first()
        other = Other(tell)
        while not done.wait(0.005) and not waits(other):
            pass
    other.answer()


def looked_at_while_its_parent_ends() -> None:
    """The child is committed after its parent's end has looked for children, and looked at before that is committed."""
    parent = running()
    made = []

    def late() -> None:
        made.append(id_ := child(parent, using=ENGINE))
        transitions.check_parents([id_], using=ENGINE)

    meanwhile(lambda: end(parent), late)
    keep(rows.state(made[0]) == "Enqueued", FOR_EVER)


def looked_at_together_with_its_parent() -> None:
    """The same, and the parent is to be looked at as a child in the same call: it waits no more, it runs."""
    parent = child(make_job(State.SUCCEEDED).id)
    transitions.check_parents([parent])
    made = []

    def late() -> None:
        made.append(id_ := child(parent, using=ENGINE))
        transitions.check_parents([parent, id_], using=ENGINE)

    meanwhile(lambda: run(parent), late)
    keep(rows.state(made[0]) == "Enqueued", FOR_EVER)


def requeued_while_its_parent_ends() -> None:
    """The end of the parent finds the child Cancelled; its requeue is to find the parent ended."""
    bad, parent = make_job(State.FAILED).id, running()
    id_ = child(bad, parent)
    transitions.check_parents([id_])
    meanwhile(lambda: end(parent), lambda: transitions.requeue([id_], using=ENGINE))
    keep(rows.state(id_) == "Enqueued", FOR_EVER)


def of_two_that_end_at_once() -> None:
    """Neither of the two ends sees the other's. Of two types: those of one would wait for each other's metrics."""
    one, two = sorted([running(type="one"), running(type="two")])
    id_ = child(one, two)
    transitions.check_parents([id_])
    meanwhile(lambda: end(two), lambda: end(one, using=ENGINE))
    keep(rows.state(id_) == "Enqueued", FOR_EVER)


def killed_after_the_end_of_its_parent() -> None:
    """Whoever ended the parent is killed when that is committed; everybody else goes on."""
    parent = running()
    id_ = child(parent)
    transitions.check_parents([id_])
    end(parent)
    keep(rows.state(id_) == "Enqueued", FOR_EVER)


def told_to_the_broker() -> None:
    """The same, and a broker carries the work: its message was written with it."""
    with with_broker():
        parent = running()
        id_ = child(parent)
        end(parent)
        row = rows.job(id_)
        sent = rows.select("SELECT dispatch_id FROM turno.outbox_messages WHERE job_id = %s", id_)
    keep(sent == [{"dispatch_id": row["dispatch_id"]}], "an accepted job waits for ever: nobody was told of it")


def falls_with_its_parent() -> None:
    """A line of three whose first one fails."""
    parent = running()
    son = child(parent)
    grandson = child(son)
    end(parent, to=State.FAILED)
    keep((rows.state(son), rows.state(grandson)) == ("Cancelled", "Cancelled"), "runs although its parent did not")


def falls_with_one_of_a_younger_id() -> None:
    """The same where clocks differed: the last of the line is looked at first, when its parent still waits."""
    parent = running()
    ids = sorted((new_id() for _ in range(3)), reverse=True)
    plant(ids, list(zip(ids, [parent, *ids], strict=False)))
    with mock.patch.object(parents, "BATCH", 1):
        end(parent, to=State.FAILED)
    keep([rows.state(id_) for id_ in ids] == ["Cancelled"] * 3, FOR_EVER)


def falls_when_it_is_looked_at() -> None:
    """A child whose parent had failed before has a child of its own."""
    son = child(make_job(State.FAILED).id)
    grandson = child(son)
    transitions.check_parents([grandson])
    transitions.check_parents([son])
    keep(rows.state(grandson) == "Cancelled", FOR_EVER)


def purged_before_anybody_looked() -> None:
    """Retention meets a failed parent whose child nobody has looked at yet."""
    parent = make_job(State.FAILED, finished_at=rows.ago(1000)).id
    id_ = child(parent)
    transitions.purge(State.FAILED, age=10.0, letters=0.0, limit=9)
    transitions.check_parents([id_])
    keep(rows.state(id_) == "Cancelled", "runs although its parent did not")


def cancelled_by_a_person() -> None:
    """A parent that waits is cancelled, and whoever did it is killed when that is committed."""
    parent = make_job().id
    id_ = child(parent)
    transitions.check_parents([id_])
    transitions.cancel([parent])
    keep(rows.state(id_) == "Cancelled", FOR_EVER)
