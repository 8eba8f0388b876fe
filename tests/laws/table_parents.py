"""The guards of continuations: who ends a parent and who looks at its child meet at a row; what falls falls whole."""

from collections.abc import Callable
from typing import Any

from tests.laws import scenarios_parents as parents
from tests.laws.guards import Attribute
from tests.laws.law import Law, sql

FOR_EVER = "a child waits for ever"
NEEDED = "c.waiting_for = 'parents'", "FALSE"
SHARED = sql("parents.LOCK_PARENTS", ("FOR SHARE", ""))


def _nothing(_whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments: None


def _cascades_no_further(whole: Callable[..., Any]) -> Callable[..., Any]:
    """Children are decided, and nobody hears which of them fell."""
    return lambda cursor, ids: (whole(cursor, ids)[0], [])


PARENTS = [
    Law(6, "a look at a child waits for its parents", FOR_EVER, (SHARED,), parents.looked_at_while_its_parent_ends),
    Law(
        6,
        "so it does for one that was a child of the same call and runs",
        FOR_EVER,
        (sql("parents.WAITING", ("AND COALESCE(j.waiting_for, '') = 'parents'", "")),),
        parents.looked_at_together_with_its_parent,
    ),
    Law(6, "a requeue waits for the parents", FOR_EVER, (SHARED,), parents.requeued_while_its_parent_ends),
    Law(
        6,
        "children are locked before their parents are counted",
        FOR_EVER,
        (sql("parents.LOCK_CHILDREN", ("FOR NO KEY UPDATE", "")),),
        parents.of_two_that_end_at_once,
    ),
    Law(
        6,
        "a child is opened in the transaction of its parent's end",
        FOR_EVER,
        (Attribute("jobs.transitions.finish", "after_ends", _nothing),),
        parents.killed_after_the_end_of_its_parent,
    ),
    Law(
        4,
        "the message in the transaction of its job (a child)",
        "an accepted job waits for ever",
        (sql("parents.WAKE", ("WHERE %(broker)s::bool AND state = 'Enqueued'", "WHERE FALSE")),),
        parents.told_to_the_broker,
    ),
    Law(
        6,
        "what falls takes its own children with it",
        "runs although its parent did not",
        (sql("parents.FALL", ("e.policy = 'cancel'", "FALSE")),),
        parents.falls_with_its_parent,
    ),
    Law(
        6,
        "what falls later than its children were looked at takes them with it",
        FOR_EVER,
        (Attribute("jobs.transitions.parents", "_decide", _cascades_no_further),),
        parents.falls_with_one_of_a_younger_id,
    ),
    Law(
        6,
        "what falls when it is looked at takes its own children with it",
        FOR_EVER,
        (Attribute("jobs.transitions.parents", "_decide", _cascades_no_further),),
        parents.falls_when_it_is_looked_at,
    ),
    Law(
        6,
        "retention's look at what a waiting child needs, or its second look under the lock",
        "runs although its parent did not",
        (sql("purge.LOOK", NEEDED), sql("purge.STILL", NEEDED)),
        parents.purged_before_anybody_looked,
    ),
    Law(
        6,
        "a child is decided in the transaction of its parent's cancel",
        FOR_EVER,
        (Attribute("jobs.transitions.people", "after_ends", _nothing),),
        parents.cancelled_by_a_person,
    ),
]
