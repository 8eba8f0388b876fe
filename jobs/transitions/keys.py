"""Concurrency keys and limits of types: their rows, their slots, and how a slot that came free is handed over.

A limit of a type is a key of another kind. A slot belongs to (job, dispatch token): to one that runs, or to one that
was woken for it and waits in its queue for a worker. Who frees a slot holds the key's row and wakes the next one in a
later statement of the same transaction, with the slot in its hand: nothing is counted twice, nobody is woken in vain.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.serving import coming
from jobs.transitions.outbox import broker, dispatch, enqueued
from jobs.transitions.sql import arrays, fetch, filled_arrays, notify_all, unnest

KEY, TYPE = "key", "type"

KEYS = {"kind": "text", "value": "text"}
# A key that is there is not touched. Sorted, so that two who insert the same wait for each other in one order.
MISSING = f"""
INSERT INTO turno.concurrency_keys (kind, value)
SELECT kind, value FROM {unnest("i", KEYS)}
WHERE NOT EXISTS (SELECT FROM turno.concurrency_keys AS k WHERE k.kind = i.kind AND k.value = i.value)
ORDER BY kind, value ON CONFLICT (kind, value) DO NOTHING
"""
LOCK = f"""
SELECT k.id, k.kind, k.value
FROM {unnest("i", KEYS)} JOIN turno.concurrency_keys AS k ON k.kind = i.kind AND k.value = i.value
ORDER BY k.id FOR NO KEY UPDATE OF k
"""
FIND = f"""
SELECT k.kind, k.value, k.id
FROM {unnest("i", KEYS)} JOIN turno.concurrency_keys AS k ON k.kind = i.kind AND k.value = i.value
"""
NAMES = "SELECT id, kind, value FROM turno.concurrency_keys WHERE id = ANY(%(ids)s::bigint[])"
# The keys whose slots these executions hold. LOCKED_HERE finds them in later statements of the transaction.
LOCK_HELD = f"""
WITH held AS MATERIALIZED (
    SELECT k.id FROM turno.concurrency_keys AS k
    WHERE k.id = ANY (ARRAY(
        SELECT s.key_id FROM {unnest("i", {"id": "uuid", "token": "uuid"})}
        JOIN turno.concurrency_slots AS s ON s.job_id = i.id AND s.dispatch_id = i.token
        WHERE s.job_id = ANY(%(id)s::uuid[])
    ))
    ORDER BY k.id FOR NO KEY UPDATE
)
SELECT h.id FROM held AS h
CROSS JOIN (SELECT set_config('turno.held', (SELECT array_agg(id)::text FROM held), true) AS said) AS kept
WHERE kept.said IS NOT NULL
"""
LOCKED_HERE = "NULLIF(current_setting('turno.held', true), '')::bigint[]"
# The keys that these waiting jobs have, or hold a slot of: whoever takes them out of their queue wakes the next.
LOCK_WAITING = """
SELECT k.id FROM turno.concurrency_keys AS k
WHERE k.id = ANY (ARRAY(
    SELECT s.key_id FROM turno.concurrency_slots AS s JOIN turno.jobs AS j ON j.id = s.job_id
    WHERE s.job_id = ANY(%(ids)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
    UNION
    SELECT o.id FROM turno.jobs AS j JOIN turno.concurrency_keys AS o ON o.kind = 'key' AND o.value = j.concurrency_key
    WHERE j.id = ANY(%(ids)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
))
ORDER BY k.id FOR NO KEY UPDATE
"""
RELEASE = "DELETE FROM turno.concurrency_slots WHERE job_id = ANY(%(ids)s::uuid[]) RETURNING key_id"
LIMITED = "SELECT name FROM turno.job_types WHERE max_running IS NOT NULL"
RATED = "SELECT type FROM turno.rates"
COMING = coming("k.value", only="k.kind = 'key'")  # of a key `k`
WOKEN = {"id": "uuid", "token": "uuid", "admitted": "bool"}
SLOTS = {"job": "uuid", "held_by": "uuid", "key": "bigint", "number": "int"}
# They keep their place: by the time for which they have waited they are the first of their queue.
WAKE = f"""
WITH chosen AS MATERIALIZED (SELECT * FROM {unnest("c", WOKEN)}), moved AS (
    UPDATE turno.jobs AS j
    SET state = 'Enqueued', dispatch_id = c.token, admitted = CASE WHEN c.admitted THEN c.token END,
        announced_at = NULL, enqueued_at = COALESCE(j.enqueued_at, j.created_at), waiting_for = NULL, gate = NULL
    FROM chosen AS c WHERE j.id = c.id AND COALESCE(j.state, '') = 'Scheduled' AND j.run_at IS NULL
    RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority
), slots AS (
    INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id)
    SELECT s.key, s.number, s.job, s.held_by FROM {unnest("s", SLOTS)} JOIN moved AS m ON m.id = s.job
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)
    SELECT id, 'Scheduled', 'Enqueued', 'gate_opened' FROM moved ORDER BY id
) {dispatch("moved")}
SELECT queue FROM moved
"""


class Slot(NamedTuple):
    """A slot to be taken: the `number` of the key `key`, by the job `job` for its dispatch token `token`."""

    job: UUID
    token: UUID
    key: int
    number: int


class Woken(NamedTuple):
    """A parked job to be Enqueued with a token; `admitted`: nothing more keeps it from starting."""

    id: UUID
    token: UUID
    admitted: bool


def lowest(taken: Collection[int]) -> int:
    """The lowest number from 1 that is not taken."""
    number = 1
    while number in taken:
        number += 1
    return number


def lock(cursor: CursorWrapper, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Lock the rows of (kind, value) in the one order of all, those that are missing are made; their ids."""
    params = arrays(KEYS, sorted(set(wanted)))
    found: dict[tuple[str, str], int] = {}
    while len(found) < len(params["kind"]):  # retention may have taken one between the two
        cursor.execute(MISSING, params)
        found = {(kind, value): id_ for id_, kind, value in fetch(cursor, LOCK, params)}
    return found


def lock_free(cursor: CursorWrapper, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Lock those rows of (kind, value) that are there and that nobody has locked; their ids."""
    params = arrays(KEYS, sorted(set(wanted)))
    found = fetch(cursor, f"{LOCK} SKIP LOCKED", params) if params["kind"] else []
    return {(kind, value): id_ for id_, kind, value in found}


def find(cursor: CursorWrapper, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The ids of (kind, value), without a lock; those that are missing are left out."""
    return {(kind, value): id_ for kind, value, id_ in fetch(cursor, FIND, arrays(KEYS, sorted(set(wanted))))}


def lock_held(cursor: CursorWrapper, held: Sequence[tuple[UUID, UUID]]) -> set[int]:
    """Lock the keys of the slots that executions (id, dispatch token) hold, before their jobs are; their ids."""
    return {key for (key,) in fetch(cursor, LOCK_HELD, filled_arrays(("id", "token"), held))} if held else set()


def of_running(which: str) -> str:
    """The SQL that locks the keys whose slots Processing jobs hold of which the SQL `which` is true (as `j`).

    For who ends jobs that it locks by itself: keys are locked before the jobs, by all verbs.
    """
    return f"""
SELECT k.id FROM turno.concurrency_keys AS k
WHERE k.id = ANY (ARRAY(
    SELECT s.key_id FROM turno.concurrency_slots AS s JOIN turno.jobs AS j ON j.id = s.job_id
    WHERE j.state = 'Processing' AND {which}
))
ORDER BY k.id FOR NO KEY UPDATE
"""


def lock_waiting(cursor: CursorWrapper, ids: Sequence[UUID]) -> set[int]:
    """Lock the keys that Enqueued jobs have, before the jobs are; their ids."""
    return {key for (key,) in fetch(cursor, LOCK_WAITING, {"ids": list(ids)})} if ids else set()


def release(cursor: CursorWrapper, ids: Collection[UUID]) -> list[int]:
    """Give up every slot of these jobs, which are locked here and run no more; the keys, one entry a slot."""
    return [key for (key,) in fetch(cursor, RELEASE, {"ids": list(ids)})] if ids else []


def wake(cursor: CursorWrapper, woken: Sequence[Woken], slots: Sequence[Slot]) -> int:
    """Enqueue parked jobs that are locked here, with their slots, and announce them to their queues; how many."""
    if not woken:
        return 0
    params = arrays(WOKEN, woken) | arrays(SLOTS, slots) | {"broker": broker()}
    queues = [queue for (queue,) in fetch(cursor, WAKE, params)]
    notify_all(cursor, enqueued(queues))
    return len(queues)
