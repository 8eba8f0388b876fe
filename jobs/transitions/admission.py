"""Jobs with a key or a limit on their way to a worker: let through all their gates at once, or parked at the first.

One transaction: the rows of the gates are locked, then the jobs, then what is taken is counted in a later statement,
then all is written. A job that was woken with all that it needs in its hand (`admitted`) has passed them before. But
the rate of its type is paid where the job starts, since a worker may come for it long after it was woken.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.serving import IN_QUEUE, QUEUE_PAUSED
from jobs.states import Waiting
from jobs.transitions.circuits import KEPT_BACK
from jobs.transitions.gatekeeper import Gated, Gates, Stop, promised
from jobs.transitions.handover import COLUMNS, let_through, pass_on, tell_of_rates, waiting
from jobs.transitions.keys import KEY, LIMITED, RATED, TYPE
from jobs.transitions.pauses import HELD_BACK
from jobs.transitions.rates import Budget
from jobs.transitions.seats import KEYED, SEATED
from jobs.transitions.sql import arrays, fetch, in_transaction, unnest

# Of a job `j`: whether a key or a limit is to be asked before it starts. Both lists are read once a statement.
PASSED = "j.admitted IS NOT DISTINCT FROM j.dispatch_id"
GATED = f"""(
    j.type = ANY (ARRAY({RATED}))
    OR (j.concurrency_key IS NOT NULL OR j.type = ANY (ARRAY({LIMITED}))) AND NOT {PASSED}
)"""
STILL_ENQUEUED = f"""
SELECT j.id FROM turno.jobs AS j JOIN {unnest("i", {"id": "uuid", "token": "uuid"})}
  ON j.id = i.id AND j.dispatch_id = i.token
WHERE j.id = ANY(%(id)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
  AND j.queue <> ALL (ARRAY(SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED}))
  AND NOT {KEPT_BACK} AND NOT {HELD_BACK}
ORDER BY j.id FOR NO KEY UPDATE OF j
"""
STILL_PARKED = """
SELECT j.id FROM turno.jobs AS j
WHERE j.id = ANY(%(id)s::uuid[]) AND COALESCE(j.state, '') = 'Scheduled' AND COALESCE(j.waiting_for, '') = 'rate'
ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
"""
START = f"WITH seats AS (SELECT * FROM {unnest('s', {'id': 'uuid', 'slot': 'int'})}) {SEATED}"
# A parked job has no slot: those in its hand are given up. Of a full key all that waits without a slot is parked with
# it: nothing of it has to be looked at again before it can start.
PARK_COLUMNS = {"id": "uuid", "waiting_for": "text", "gate": "text"}
PARK = f"""
WITH full_keys AS (
    SELECT * FROM {unnest("f", {"key": "bigint", "value": "text", "least": "int"})}
), rest AS MATERIALIZED (
    SELECT j.id, 'concurrency_key' AS waiting_for, f.value AS gate FROM full_keys AS f CROSS JOIN LATERAL (
        SELECT e.id FROM turno.jobs AS e
        WHERE {IN_QUEUE} AND e.concurrency_key = f.value AND e.concurrency_limit <= f.least
          AND e.id <> ALL(%(id)s::uuid[]) AND e.admitted IS DISTINCT FROM e.dispatch_id
        ORDER BY e.enqueued_at LIMIT %(rest)s FOR NO KEY UPDATE SKIP LOCKED
    ) AS j
), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Scheduled', dispatch_id = NULL, announced_at = NULL, waiting_for = p.waiting_for, gate = p.gate
    FROM (SELECT * FROM {unnest("i", PARK_COLUMNS)} UNION ALL SELECT * FROM rest) AS p
    WHERE j.id = p.id AND COALESCE(j.state, '') = 'Enqueued'
    RETURNING j.id
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Enqueued', 'Scheduled', 'parked' FROM moved ORDER BY id
), freed AS (
    DELETE FROM turno.concurrency_slots WHERE job_id = ANY (ARRAY(SELECT id FROM moved)) RETURNING key_id
)
SELECT ARRAY(SELECT key_id FROM freed)
"""
REST = 500  # jobs of a full key that are parked besides, in one transaction


def gated(row: Sequence[Any]) -> Gated:
    """The job of a row of OR_GATED."""
    id_, token, type_, key, _none, slot, key_limit = row[:7]
    return Gated(id_, token, type_, key, key_limit, slot, row[15], row[16])


def admit(wanted: Sequence[Gated], owner: Mapping[str, Any], *, waits: bool, using: str) -> list[tuple[Any, ...]]:
    """Start those of `wanted` that their gates let through, by priority and age, and park the others.

    `owner`: the parameters of SEATED. `waits`: for rows that others have locked (a claim by id), else they are skipped.
    Returns the rows of SEATED. One transaction.
    """

    def work(cursor: CursorWrapper) -> list[tuple[Any, ...]]:
        gates = Gates.in_order(cursor, wanted)
        pairs = arrays(("id", "token"), [(job.id, job.token) for job in wanted])
        found = fetch(cursor, STILL_ENQUEUED + ("" if waits else " SKIP LOCKED"), pairs)
        there = {id_ for (id_,) in found}
        gates.count()
        start: list[tuple[UUID, int]] = []
        stop: list[tuple[Gated, Stop]] = []
        for job in sorted(wanted, key=lambda job: (-job.priority, job.since, job.id)):
            if job.id not in there:
                continue
            stopped = gates.ask(job)
            if stopped is None:
                start.append((job.id, job.slot))
            else:
                stop.append((job, stopped))
        gates.write()
        rows = fetch(cursor, START, arrays(("id", "slot"), start) | dict(owner)) if start else []
        holding = {job.id for job in wanted if job.key is not None or (TYPE, job.type) in gates.locked}
        rows = [(*row[:KEYED], row[0] in holding) for row in rows]
        if stop:
            _park(cursor, gates, stop)
        return rows

    return in_transaction(using, work)


def _park(cursor: CursorWrapper, gates: Gates, stop: Sequence[tuple[Gated, Stop]]) -> None:
    """Park those that a gate has stopped. What they held of other gates goes to the next there, and so does the place
    at their key that they were about to take (`COMING`) where another gate has stopped them."""
    rows = [(job.id, str(one.waiting), one.gate) for job, one in stop]
    params = arrays(PARK_COLUMNS, rows) | arrays(("key", "value", "least"), gates.full_keys()) | {"rest": REST}
    freed: list[int] = list(fetch(cursor, PARK, params)[0][0])
    left = [job.key for job, one in stop if job.key is not None and one.waiting is not Waiting.CONCURRENCY_KEY]
    pass_on(cursor, [*freed, *(gates.locked[KEY, key] for key in left)], list(gates.locked.values()))
    tell_of_rates(cursor, (one for _, one in stop))


WAITING_FOR_RATE = f"""
SELECT id, {COLUMNS}, priority, created_at FROM turno.jobs
WHERE waiting_for = 'rate' AND gate = %(type)s::text ORDER BY priority DESC, created_at, id LIMIT %(limit)s
"""
PEEK_RATE = """
SELECT allowed, "window", spent, extract(epoch FROM clock_timestamp())::float8 FROM turno.rates
WHERE type = %(type)s::text
"""


def open_rate(type_: str, *, limit: int, using: str = "default") -> tuple[int, float | None]:
    """Wake as many of those that wait for a type's rate as may start now beside those that are woken; how many.

    And the seconds until another one may be woken; None when none waits. What has another gate before it by now goes
    there. Each pays where it starts. A type without a rate lets all through, `limit` at a time.
    """

    def work(cursor: CursorWrapper) -> tuple[int, float | None]:
        peeked = fetch(cursor, PEEK_RATE, {"type": type_})
        budget = Budget(*peeked[0]) if peeked else None
        if budget is not None and budget.left:
            budget.promised = dict(promised(cursor, [type_])).get(type_, 0)
        room = limit if budget is None else min(limit, budget.room)
        if budget is not None and budget.set_back:
            room = max(1, room)  # none may go through, but from now on it is known when the window is over
        found = fetch(cursor, WAITING_FOR_RATE, {"type": type_, "limit": room + 1})
        if not found:
            return 0, None
        if room == 0:
            return 0, budget.wait if budget else 0.0
        wanted = [waiting(row) for row in found[:room]]
        gates = Gates.in_order(cursor, wanted)
        moved = _through(cursor, gates, wanted)
        left = gates.budget(type_)
        return moved, (0.0 if left is None else left.wait) if moved < len(found) else None

    return in_transaction(using, work)


def _through(cursor: CursorWrapper, gates: Gates, wanted: Sequence[Gated]) -> int:
    there = {id_ for (id_,) in fetch(cursor, STILL_PARKED, {"id": [job.id for job in wanted]})}
    gates.heed_others(wanted)
    gates.count(waking=True)
    through: list[Gated] = []
    elsewhere: list[tuple[Gated, Stop]] = []
    for job in wanted:
        if job.id not in there:
            continue
        stop = gates.ask(job)
        if stop is None:
            through.append(job)
        elif stop.waiting is not Waiting.RATE:
            elsewhere.append((job, stop))
    return let_through(cursor, gates, through, elsewhere) + len(elsewhere)
