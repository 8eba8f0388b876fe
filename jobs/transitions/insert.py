"""New jobs: one INSERT for the whole batch, its history, messages and wake-ups, in the caller's transaction.

No row of another job, no key and no gate is locked: callers may keep their transaction open for long. Only a rival that
holds the same unique or idempotency key in an open transaction is waited for, LOCK_TIMEOUT seconds at most.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import OperationalError, connections
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.conf import conf
from jobs.errors import Conflict, IdempotencyMismatch
from jobs.states import State
from jobs.transitions.keys import LIMITED, RATED
from jobs.transitions.outbox import broker, dispatch
from jobs.transitions.parents import depend
from jobs.transitions.plain import PLAIN, PLAIN_DISPATCHED, is_plain
from jobs.transitions.prepared import fetch_prepared
from jobs.transitions.rivals import firsts, holders
from jobs.transitions.sql import DUE, GATES, OUTBOX, WORK, fetch, in_transaction, sqlstate

LOCK_TIMEOUT = 5.0
TRIES = 5
STATEMENT_BYTES = 16 * 1024 * 1024
LOCK_NOT_AVAILABLE, DEADLOCK = "55P03", "40P01"


class NewJob(NamedTuple):
    """A row to insert, checked by the caller. `payload` is JSON text; `run_at` or `delay` (seconds) or neither;
    `priority` None: that of the queue."""

    id: UUID
    type: str
    queue: str
    payload: str
    priority: int | None
    max_attempts: int
    timeout: float | None
    at_most_once: bool
    run_at: datetime | None = None
    delay: float | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    route: str | None = None
    request_hash: str | None = None
    owner: str | None = None
    origin: str | None = None
    tags: tuple[str, ...] = ()
    recurring_job_id: UUID | None = None
    fired_for: datetime | None = None
    concurrency_key: str | None = None
    concurrency_limit: int | None = None
    after: tuple[UUID, ...] | None = None
    on_parent_failure: str | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that answers a request: a new one, the active `duplicate` of its unique key, or the `replayed` first."""

    id: UUID
    state: State
    duplicate: bool = False
    replayed: bool = False


# At which gate a row `i` is parked at once: where others wait already it would only be looked at in vain; of its own
# batch as many go on as could run. Whoever leads looks at the gate after the commit: it may have opened between.
PARKED = f"""CASE WHEN NOT ready THEN NULL
    WHEN concurrency_key IS NOT NULL AND (
        row_number() OVER (PARTITION BY concurrency_key, ready ORDER BY rank DESC, id) > concurrency_limit
        OR EXISTS (
            SELECT FROM turno.jobs AS w WHERE w.waiting_for = 'concurrency_key' AND w.gate = i.concurrency_key
        )
    ) THEN 'concurrency_key'
    WHEN type = ANY (ARRAY({LIMITED})) AND EXISTS (
        SELECT FROM turno.jobs AS w WHERE w.waiting_for = 'type_limit' AND w.gate = i.type
    ) THEN 'type_limit'
    WHEN type = ANY (ARRAY({RATED})) AND EXISTS (
        SELECT FROM turno.jobs AS w WHERE w.waiting_for = 'rate' AND w.gate = i.type
    ) THEN 'rate'
END"""


# One parameter, a JSON list of objects: arrays by column cost the client six times as much. Fields that are None are
# left out. Instants are the statement's: now() is the start of a transaction that may be long ago.
# Sorted by unique key, so that rivals wait for each other in one order, whatever the order of their batches.
INSERT = f"""
WITH given AS (
    SELECT *, COALESCE(run_at, statement_timestamp() + delay * interval '1 second') AS asked
    FROM json_to_recordset(%(rows)s::json) AS i(
        id uuid, type text, queue text, payload jsonb, priority int, max_attempts int, timeout float8,
        at_most_once bool, run_at timestamptz, delay float8, unique_key text, idempotency_key text, route text,
        request_hash text, owner text, origin text, tags text[], after uuid[], recurring_job_id uuid,
        fired_for timestamptz, concurrency_key text, concurrency_limit int
    )
), new AS (
    SELECT *, CASE WHEN asked > statement_timestamp() THEN asked END AS due, after IS NOT NULL AS child,
        COALESCE(priority, (SELECT q.default_priority FROM turno.queues AS q WHERE q.name = given.queue), 0) AS rank
    FROM given
), ready AS (
    SELECT *, due IS NULL AND NOT child AS ready FROM new
), placed AS (
    SELECT *, {PARKED} AS parked FROM ready AS i
), inserted AS (
    INSERT INTO turno.jobs (
        id, type, queue, payload, priority, max_attempts, timeout, at_most_once, unique_key, idempotency_key, route,
        request_hash, owner, origin, tags, state, dispatch_id, enqueued_at, run_at, not_before, waiting_for,
        created_at, recurring_job_id, fired_for, concurrency_key, concurrency_limit, gate
    )
    SELECT id, type, queue, payload, rank, max_attempts, timeout, at_most_once, unique_key, idempotency_key,
        route, request_hash, owner, origin, tags,
        CASE WHEN ready AND parked IS NULL THEN 'Enqueued' ELSE 'Scheduled' END,
        CASE WHEN ready AND parked IS NULL THEN gen_random_uuid() END,
        CASE WHEN ready AND parked IS NULL THEN statement_timestamp() END,
        CASE WHEN NOT child THEN due END, due,
        CASE WHEN child THEN 'parents' WHEN due IS NOT NULL THEN 'due' ELSE parked END,
        statement_timestamp(), recurring_job_id, fired_for, concurrency_key, concurrency_limit,
        CASE parked WHEN 'concurrency_key' THEN concurrency_key WHEN 'type_limit' THEN type WHEN 'rate' THEN type END
    FROM placed ORDER BY unique_key COLLATE "C", id
    ON CONFLICT DO NOTHING
    RETURNING id, state, dispatch_id, queue, priority, owner, waiting_for, gate
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, actor)
    SELECT id, NULL, state, 'created', owner FROM inserted ORDER BY id
) {dispatch("inserted")}
SELECT id, state FROM inserted
UNION ALL
SELECT NULL, pg_notify('{WORK}', queue)::text
FROM (SELECT DISTINCT queue FROM inserted WHERE state = 'Enqueued') AS woken
UNION ALL
SELECT NULL, pg_notify('{OUTBOX}', '')::text
WHERE %(broker)s::bool AND EXISTS (SELECT FROM inserted WHERE state = 'Enqueued')
UNION ALL
SELECT NULL, pg_notify('{GATES}', at)::text FROM (
    SELECT DISTINCT CASE waiting_for WHEN 'concurrency_key' THEN 'key:' ELSE 'type:' END || gate AS at
    FROM inserted WHERE gate IS NOT NULL
) AS gates
UNION ALL
SELECT NULL, pg_notify('{DUE}', '')::text
WHERE EXISTS (SELECT FROM new WHERE due < statement_timestamp() + %(soon)s::float8 * interval '1 second')
"""
LIMIT_WAITS = "SELECT current_setting('lock_timeout'), set_config('lock_timeout', %(limit)s::text, true)"


def insert(rows: Sequence[NewJob], *, using: str = "default") -> list[Enqueued]:
    """Insert a batch, all or nothing, and answer each row in order; ids must ascend in the order of the batch.

    Joins the caller's transaction by a savepoint, so that a refusal leaves it usable; opens one otherwise. Raises
    IdempotencyMismatch (`extra["index"]` is the row's), Conflict (`extra["retry_after"]`, seconds) when a rival holds
    one of the keys in a transaction that stays open, and UnknownParents.
    """
    joined = connections[using].in_atomic_block
    waits = any(row.unique_key is not None or row.idempotency_key is not None for row in rows)

    def work(cursor: CursorWrapper) -> list[Enqueued]:
        if not waits:
            placed = _place(cursor, rows)
        else:
            [(before, _limit)] = fetch(cursor, LIMIT_WAITS, {"limit": f"{LOCK_TIMEOUT * 1000:.0f}ms"})
            placed = _place(cursor, rows)
            if joined:
                fetch(cursor, LIMIT_WAITS, {"limit": before})
        children = (row for row in rows if row.after and placed[row.id].id == row.id)
        depend(cursor, ((row.id, row.after or (), row.on_parent_failure or "cancel") for row in children))
        return [placed[row.id] for row in rows]

    single = not waits and len(rows) == 1 and not rows[0].after
    try:
        return in_transaction(using, work, single=single)
    except OperationalError as error:
        if sqlstate(error) in {LOCK_NOT_AVAILABLE, DEADLOCK}:
            raise _in_progress() from error
        raise


def _in_progress() -> Conflict:
    return Conflict(_("A request with the same key is in progress; try again in a moment."), retry_after=1)


def _place(cursor: CursorWrapper, rows: Sequence[NewJob]) -> dict[UUID, Enqueued]:
    """Insert what can be, find who stands in the way of the rest; again where that one has ended meanwhile."""
    placed: dict[UUID, Enqueued] = {}
    left = list(rows)
    for _try in range(TRIES):
        placed |= insert_new(cursor, left)
        left = [row for row in left if row.id not in placed]
        if left:
            placed |= _answers(cursor, left, rows)
            left = [row for row in left if row.id not in placed]
        if not left:
            return placed
    raise _in_progress()


def insert_new(cursor: CursorWrapper, rows: Sequence[NewJob]) -> dict[UUID, Enqueued]:
    """One try, in the transaction of `cursor`: those that met a job of their key, or of their instant, are left out."""
    placed: dict[UUID, Enqueued] = {}
    brokered = broker()
    plain = all(is_plain(row) for row in rows)
    how = {"soon": conf().scheduler.interval, "broker": brokered, "types": " ".join({row.type for row in rows})}
    for chunk in _chunks(sorted(rows, key=lambda row: (row.unique_key is None, row.unique_key or "", row.id))):
        params = {"rows": _json(chunk), **how}
        plain = plain and bool(fetch_prepared(cursor, PLAIN_DISPATCHED if brokered else PLAIN, params))
        if plain:
            placed |= {row.id: Enqueued(row.id, State.ENQUEUED) for row in chunk}
            continue
        for id_, state in fetch_prepared(cursor, INSERT, params):
            if id_ is not None:
                placed[id_] = Enqueued(id_, State(state))
    return placed


def _chunks(rows: Iterable[NewJob]) -> Iterator[list[NewJob]]:
    """The rows in statements of a size that neither side minds."""
    chunk: list[NewJob] = []
    size = 0
    for row in rows:
        if chunk and size + len(row.payload) > STATEMENT_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += len(row.payload)
    if chunk:
        yield chunk


def _json(rows: Sequence[NewJob]) -> str:
    objects = []
    for row in rows:
        members: dict[str, Any] = {
            name: value for name, value in zip(NewJob._fields, row, strict=True) if value is not None
        }
        members["payload"] = orjson.Fragment(row.payload)
        objects.append(members)
    return orjson.dumps(objects).decode()


def _answers(cursor: CursorWrapper, left: Sequence[NewJob], rows: Sequence[NewJob]) -> dict[UUID, Enqueued]:
    """For each row that met a conflict: the first job of its idempotency key, else the active one of its unique key."""
    first_ones = firsts(cursor, [(row.owner, row.route, row.idempotency_key) for row in left])
    active = holders(cursor, [row.unique_key for row in left if row.unique_key is not None])
    answers: dict[UUID, Enqueued] = {}
    for row in left:
        if first := first_ones.get((row.owner, row.route, row.idempotency_key)):
            request_hash, id_, state = first
            if request_hash != row.request_hash:
                text = _("This Idempotency-Key was used with another request.")
                raise IdempotencyMismatch(text, index=rows.index(row))
            answers[row.id] = Enqueued(id_, State(state), replayed=True)
        elif row.unique_key in active:
            id_, state = active[row.unique_key]
            answers[row.id] = Enqueued(id_, State(state), duplicate=True)
    return answers
