"""Continuations: a child is parked until its parents are final, then it goes on or is cancelled with its own children.

Cycles are impossible: a child's parents are written with the child, and exist before it. Its `gate` is the id of a
parent that has not ended; none while nobody has looked at it since its transaction committed. Parents are locked before
their children, and counted in a later statement: whoever ends a parent and whoever looks at a child meet at a row.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import batched
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.conf import conf
from jobs.states import FINAL, Reason, Waiting
from jobs.transitions.gates import wake_by, woken
from jobs.transitions.sql import DUE, GATES, WORK, arrays, fetch, in_transaction, notify, notify_all, unnest

BATCH = 1000  # children that are locked by one statement
AT_ONCE = 5000  # children that are looked at by the transaction that ends their parents
FOUND = 25_000  # children that it reads: those beyond AT_ONCE are named to who listens, the rest is the sweep's
PREFIX = "parents:"

ENDED = ", ".join(f"'{state}'" for state in sorted(FINAL))
# COALESCE: see PROMOTE. A job that waits for its parents is Scheduled, by a constraint.
WAITS = f"COALESCE(j.waiting_for, '') = '{Waiting.PARENTS}'"
# OFFSET 0, here and below: each is looked up by its index, whatever the statistics say of tables that are mostly empty.
CHILD = f"CROSS JOIN LATERAL (SELECT id FROM turno.jobs AS j WHERE j.id = d.child_id AND {WAITS} OFFSET 0) AS c"
PARENT = "CROSS JOIN LATERAL (SELECT id, state FROM turno.jobs AS p WHERE p.id = d.parent_id OFFSET 0) AS q"
COLUMNS = {"child": "uuid", "parent": "uuid", "policy": "text"}
# Of the same owner: somebody else's job is not told from one that does not exist.
DEPEND = f"""
WITH asked AS MATERIALIZED (
    SELECT * FROM {unnest("i", COLUMNS)}
), known AS (
    INSERT INTO turno.job_dependencies (child_id, parent_id, policy)
    SELECT a.child, a.parent, a.policy
    FROM asked AS a JOIN turno.jobs AS c ON c.id = a.child JOIN turno.jobs AS p ON p.id = a.parent
    WHERE c.owner IS NOT DISTINCT FROM p.owner ORDER BY a.child, a.parent
    RETURNING child_id, parent_id
)
SELECT child, parent FROM asked EXCEPT SELECT child_id, parent_id FROM known
"""
# Counted, not "the first one": where one job has very many children a plan would look for the first from end to end.
ANY_CHILD = "SELECT count(*) FROM turno.job_dependencies WHERE parent_id = ANY(%(ended)s::uuid[])"
# The waiting children of jobs that have ended, and whatever falls with them, down to the last descendant.
CHILDREN = f"""
WITH RECURSIVE reached(id, falls) AS (
    SELECT c.id, d.policy = 'cancel' AND q.state <> 'Succeeded'
    FROM turno.job_dependencies AS d
    {CHILD}
    {PARENT}
    WHERE d.parent_id = ANY(%(ended)s::uuid[])
    UNION
    SELECT c.id, d.policy = 'cancel'
    FROM reached AS r
    CROSS JOIN LATERAL (
        SELECT child_id, policy FROM turno.job_dependencies AS e WHERE e.parent_id = r.id OFFSET 0
    ) AS d
    {CHILD}
    WHERE r.falls
)
SELECT id FROM reached LIMIT %(found)s
"""
# A parent that is itself among them is locked with them, and stronger.
LOCK_PARENTS = """
SELECT CASE WHEN state = 'Enqueued' THEN queue END, run_at < now() + %(soon)s::float8 * interval '1 second'
FROM turno.jobs
WHERE id = ANY (ARRAY(SELECT parent_id FROM turno.job_dependencies WHERE child_id = ANY(%(ids)s::uuid[])))
  AND NOT id = ANY(%(ids)s::uuid[])
ORDER BY id FOR SHARE
"""
WAITING = f"SELECT id FROM turno.jobs AS j WHERE id = ANY(%(ids)s::uuid[]) AND {WAITS} ORDER BY id"
LOCK_CHILDREN = f"{WAITING} FOR NO KEY UPDATE"
# Of locked children: those of a parent that ended badly, and those of them that fall with these. `by`: the parent.
FALL = f"""
WITH RECURSIVE fallen(id, by) AS (
    SELECT j.id, p.id FROM turno.jobs AS j CROSS JOIN LATERAL (
        SELECT q.id FROM turno.job_dependencies AS d {PARENT}
        WHERE d.child_id = j.id AND d.policy = 'cancel' AND q.state IN ('Failed', 'Cancelled')
        ORDER BY q.id LIMIT 1
    ) AS p
    WHERE j.id = ANY(%(ids)s::uuid[]) AND {WAITS}
    UNION
    SELECT c.id, f.id FROM fallen AS f
    CROSS JOIN LATERAL (
        SELECT child_id FROM turno.job_dependencies AS e WHERE e.parent_id = f.id AND e.policy = 'cancel' OFFSET 0
    ) AS d
    {CHILD}
    WHERE c.id = ANY(%(ids)s::uuid[])
), cancelled AS (
    UPDATE turno.jobs AS j
    SET state = 'Cancelled', finished_at = now(), dispatch_id = NULL, announced_at = NULL, waiting_for = NULL,
        gate = NULL
    WHERE j.id = ANY (ARRAY(SELECT id FROM fallen)) AND {WAITS}
    RETURNING j.id
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, detail)
    SELECT c.id, 'Scheduled', 'Cancelled', '{Reason.PARENT_FAILED}', f.by::text
    FROM cancelled AS c JOIN (SELECT DISTINCT ON (id) id, by FROM fallen ORDER BY id, by) AS f USING (id) ORDER BY c.id
)
SELECT id FROM cancelled
"""
# Of locked children that still wait: whether their instant is to come, and a parent that has not ended, the one that is
# their gate before another.
UNFINISHED = f"""
SELECT j.id, COALESCE(j.not_before > now(), false), j.gate, p.id::text
FROM turno.jobs AS j LEFT JOIN LATERAL (
    SELECT q.id FROM turno.job_dependencies AS d {PARENT}
    WHERE d.child_id = j.id AND q.state NOT IN ({ENDED})
    ORDER BY q.id::text IS DISTINCT FROM j.gate, q.id LIMIT 1
) AS p ON true
WHERE j.id = ANY(%(ids)s::uuid[]) AND {WAITS}
"""
WAKE = f"WITH chosen AS MATERIALIZED (SELECT unnest(%(ids)s::uuid[]) AS id) {woken(Waiting.PARENTS)}"
WAIT_FOR_INSTANT = f"""
UPDATE turno.jobs AS j SET waiting_for = '{Waiting.DUE}', run_at = not_before, gate = NULL
WHERE id = ANY(%(ids)s::uuid[]) AND {WAITS}
RETURNING run_at < now() + %(soon)s::float8 * interval '1 second'
"""
WAIT_AT = f"""
UPDATE turno.jobs AS j SET gate = i.gate FROM {unnest("i", {"id": "uuid", "gate": "text"})}
WHERE j.id = i.id AND j.id = ANY(%(id)s::uuid[]) AND {WAITS}
"""
# Just requeued. Whoever requeues a child knows of the parents that had failed: it runs despite those.
PARK = f"""
WITH moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Scheduled', dispatch_id = NULL, announced_at = NULL, waiting_for = '{Waiting.PARENTS}', gate = p.id,
        not_before = NULL
    FROM turno.jobs AS k CROSS JOIN LATERAL (
        SELECT q.id::text FROM turno.job_dependencies AS d {PARENT}
        WHERE d.child_id = k.id AND q.state NOT IN ({ENDED}) ORDER BY q.id LIMIT 1
    ) AS p
    WHERE k.id = ANY(%(ids)s::uuid[]) AND j.id = ANY(%(ids)s::uuid[]) AND j.id = k.id
      AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id
), forgiven AS (
    UPDATE turno.job_dependencies SET policy = 'run'
    WHERE id = ANY (ARRAY(
        SELECT d.id FROM turno.job_dependencies AS d {PARENT}
        WHERE d.child_id = ANY (ARRAY(SELECT id FROM moved)) AND q.state IN ('Failed', 'Cancelled')
    ))
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Enqueued', 'Scheduled', '{Reason.PARKED}' FROM moved ORDER BY id
)
SELECT id FROM moved
"""


class UnknownParents(Exception):
    """Some parents do not exist, or are another owner's: `missing` has (child, parent) each."""

    def __init__(self, missing: Iterable[tuple[UUID, UUID]]) -> None:
        self.missing = set(missing)
        super().__init__(f"{len(self.missing)} parents that do not exist")


def depend(cursor: CursorWrapper, children: Iterable[tuple[UUID, Sequence[UUID], str]]) -> None:
    """Write what children (id, ids of their parents, policy) that were just inserted wait for.

    Locks no parent: who listens to GATES looks at each child after the commit, since its parents may end meanwhile.
    Raises UnknownParents. A parent that is deleted before the caller commits makes that COMMIT fail (IntegrityError).
    """
    pairs = [(child, parent, policy) for child, parents, policy in children for parent in parents]
    if not pairs:
        return
    if missing := fetch(cursor, DEPEND, arrays(COLUMNS, pairs)):
        raise UnknownParents((child, parent) for child, parent in missing)
    _announce(cursor, {child for child, _parent, _policy in pairs})


def after_ends(cursor: CursorWrapper, ended: Sequence[UUID]) -> None:
    """Look at the children of jobs that were just made final, or that are about to be deleted, in this transaction.

    Those whose last parent that was; those that fall with a failed one, and their own children in turn, however deep.
    Beyond AT_ONCE of them the others are looked at after the commit. Their rows are waited for.
    """
    if not ended or fetch(cursor, ANY_CHILD, {"ended": list(ended)}) == [(0,)]:
        return
    left = AT_ONCE
    while ended:
        found = sorted({id_ for (id_,) in fetch(cursor, CHILDREN, {"ended": list(ended), "found": FOUND})})
        now = found[:left]
        left -= len(now)
        _announce(cursor, found[len(now) :])
        # In the order of their ids, mostly that of their making. Where clocks differed a child may stand before one of
        # its parents that falls: it is found again.
        ended = [id_ for some in batched(now, BATCH) for id_ in _decide(cursor, some)[1]]


def check_parents(child_ids: Iterable[UUID], *, using: str = "default") -> int:
    """Look whether waiting children may go on, each batch in a transaction of its own; returns how many went on or were
    cancelled.

    For who hears PREFIX and an id on GATES, after the commit of a child. Safe to repeat; a child that waits no more is
    left alone.
    """
    batches = batched(sorted(set(child_ids)), BATCH)
    return sum(in_transaction(using, partial(_check, ids=ids)) for ids in batches)


def lock_parents(cursor: CursorWrapper, ids: Sequence[UUID]) -> None:
    """Lock the parents of jobs, before all of these are: none ends unseen while its children are looked at or parked.

    Who searches for work, or for what is due, passes a locked row over: they are told to look again after the commit.
    """
    rows = fetch(cursor, LOCK_PARENTS, {"ids": list(ids), "soon": conf().scheduler.interval})
    due = [(DUE, "")] if any(near for _queue, near in rows) else []
    notify_all(cursor, [*((WORK, queue) for queue, _near in rows if queue is not None), *due])


def park_children(cursor: CursorWrapper, requeued: Iterable[UUID]) -> set[UUID]:
    """Park those of the jobs just requeued whose parents have not all ended; answers which.

    A parent that had failed by now cancels them no more; one that fails later does by their policy.
    """
    return {id_ for (id_,) in fetch(cursor, PARK, {"ids": list(requeued)})}


def _check(cursor: CursorWrapper, *, ids: Sequence[UUID]) -> int:
    waiting = [id_ for (id_,) in fetch(cursor, WAITING, {"ids": list(ids)})]
    if not waiting:
        return 0
    lock_parents(cursor, waiting)
    opened, fallen = _decide(cursor, waiting)
    after_ends(cursor, fallen)
    return opened + len(fallen)


def _decide(cursor: CursorWrapper, ids: Sequence[UUID]) -> tuple[int, list[UUID]]:
    """Lock children, then see in later statements what their parents let them do; (how many went on, the cancelled)."""
    waiting = [id_ for (id_,) in fetch(cursor, LOCK_CHILDREN, {"ids": list(ids)})]
    if not waiting:
        return 0, []
    fallen = [id_ for (id_,) in fetch(cursor, FALL, {"ids": waiting})]
    rows = fetch(cursor, UNFINISHED, {"ids": waiting}) if len(fallen) < len(waiting) else []
    free = [(id_, later) for id_, later, _gate, parent in rows if parent is None]
    moved = [(id_, parent) for id_, _later, gate, parent in rows if parent is not None and parent != gate]
    if go := [id_ for id_, later in free if not later]:
        wake_by(cursor, WAKE, {"ids": go})
    if later := [id_ for id_, later in free if later]:
        soon = fetch(cursor, WAIT_FOR_INSTANT, {"ids": later, "soon": conf().scheduler.interval})
        notify(cursor, DUE, [""] if any(near for (near,) in soon) else [])
    if moved:
        cursor.execute(WAIT_AT, arrays(("id", "gate"), moved))
    return len(free), fallen


def _announce(cursor: CursorWrapper, children: Iterable[UUID]) -> None:
    notify(cursor, GATES, (f"{PREFIX}{id_}" for id_ in children))
