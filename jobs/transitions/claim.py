"""Enqueued -> Processing: by search (the N best of some queues) or by id and token (what a message named)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Claim
from jobs.serving import QUEUE_PAUSED
from jobs.transitions.admission import GATED, admit
from jobs.transitions.admission import gated as at_gates
from jobs.transitions.circuits import KEPT_BACK, park_circuit
from jobs.transitions.gatekeeper import Gated
from jobs.transitions.pauses import HELD_BACK, park_paused
from jobs.transitions.seats import OR_GATED, SEATED, as_claims, owned_by
from jobs.transitions.sql import WORK, arrays, as_array, fetch, filled, filled_arrays, in_transaction, notify
from jobs.transitions.unknown import park_unknown

ROUNDS = 8  # of one search: each finds what stands behind jobs that the one before had to park

# One statement. What is paused is left out, so is a type whose breaker is not closed, but for its probe; a job that
# another worker is looking at is skipped. Jobs with a key or a limit are not started here but answered.
CLAIM_NEXT = f"""
WITH room AS (
    SELECT o.queue, o.slots::int[] AS slots FROM unnest(%(queues)s::text[], %(slots)s::text[]) AS o(queue, slots)
    WHERE o.queue IS NOT NULL AND NOT EXISTS (
        SELECT FROM turno.pauses AS p WHERE {QUEUE_PAUSED} AND p.value = o.queue
    )
), best AS MATERIALIZED (
    SELECT j.*, r.slots
    FROM room AS r CROSS JOIN LATERAL (
        SELECT id, dispatch_id, queue, priority, enqueued_at, type, concurrency_key AS key,
            concurrency_limit AS key_limit, {GATED} AS gated
        FROM turno.jobs AS j
        WHERE state = 'Enqueued' AND queue = r.queue AND type = ANY(%(types)s::text[])
          AND NOT {KEPT_BACK} AND NOT {HELD_BACK}
        ORDER BY priority DESC, enqueued_at, id
        LIMIT cardinality(r.slots) FOR NO KEY UPDATE SKIP LOCKED
    ) AS j
), picked AS MATERIALIZED (
    SELECT *, slots[row_number() OVER (PARTITION BY queue ORDER BY priority DESC, enqueued_at, id)] AS slot FROM best
), seats AS (
    SELECT id, slot FROM picked WHERE NOT gated
)
{SEATED}{OR_GATED}
"""

# A claim by id waits for the row and does not skip it: a message is acknowledged after this, and must not be lost. From
# each id to its row, in the order of the ids, as in FINISH: no index of types may lead there, no pass over all jobs of
# a queue while the statistics are old, and no plan may compare each row with each message.
CLAIM_BY_ID = f"""
WITH picked AS MATERIALIZED (
    SELECT j.*, i.slot
    FROM (
        SELECT * FROM unnest(
            %(ids)s::uuid[], %(tokens)s::uuid[], %(slots)s::int[], %(queues)s::text[]
        ) AS w(id, token, slot, queue) ORDER BY id
    ) AS i
    CROSS JOIN LATERAL (
        SELECT j.id, j.dispatch_id, j.priority, j.enqueued_at, j.type, j.concurrency_key AS key,
            j.concurrency_limit AS key_limit, {GATED} AS gated
        FROM turno.jobs AS j
        WHERE j.id = i.id AND j.dispatch_id = i.token AND j.queue = COALESCE(i.queue, j.queue)
          AND COALESCE(j.state, '') = 'Enqueued'
          AND (%(types)s::text[] IS NULL OR COALESCE(j.type, '') = ANY(%(types)s::text[]))
          AND j.queue <> ALL (ARRAY(
              SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED}
          ))
          AND NOT {KEPT_BACK} AND NOT {HELD_BACK}
        FOR NO KEY UPDATE OF j
    ) AS j
    WHERE j.id = i.id
), seats AS (
    SELECT id, slot FROM picked WHERE NOT gated
)
{SEATED}{OR_GATED}
"""
LEFT_OUT = f"""
SELECT j.id, j.dispatch_id, j.type, {KEPT_BACK}, {HELD_BACK}
FROM turno.jobs AS j
JOIN unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(queues)s::text[]) AS i(id, token, queue)
  ON j.id = i.id AND j.dispatch_id = i.token AND j.queue = COALESCE(i.queue, j.queue)
WHERE j.id = ANY (%(ids)s::uuid[]) AND COALESCE(j.state, '') = 'Enqueued'
"""
PAUSED = f"""
SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED} AND p.value = ANY(%(queues)s::text[])
"""


class Wanted(NamedTuple):
    """A job that a message named by its token, and the slot that waits for it, of that queue (None: of the job's)."""

    job: UUID
    token: UUID
    slot: int
    queue: str | None = None


def by_queue(offer: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    """The free slots of an offer, by the queue that they are for."""
    places: dict[str, list[int]] = {}
    for queue, slot in offer:
        places.setdefault(queue, []).append(slot)
    return places


def claim_next(
    offer: Sequence[tuple[str, int]],
    *,
    types: Sequence[str],
    worker_id: UUID,
    claim_id: UUID,
    label: Mapping[str, Any],
    lease: float,
    using: str = "default",
) -> list[Claim]:
    """Claim the best waiting jobs for the free slots of `offer` (queue, slot number), best first.

    Only jobs of `types` are taken, by priority, then by the instant of enqueueing; those that a full key or a limit
    keeps from starting are parked. `lease` is in seconds, counted by the database. `label` names the worker for people.
    Returns at most one job a slot; where it is fewer for a queue no more of it wait, but for what others have locked,
    and where ROUNDS were not enough, which is announced as new work is. Raises OperationalError.
    """
    if not offer or not types:
        return []
    owner = owned_by(worker_id, claim_id, label, lease)
    left = list(offer)
    rows: list[tuple[Any, ...]] = []
    for _round in range(ROUNDS):
        found = in_transaction(using, _search(left, owner | {"types": as_array(types)}), single=True)
        started, gated = _split(found)
        if gated:
            started += admit(gated, owner, waits=False, using=using)
        rows += started
        taken = {(row[3], row[5]) for row in started}
        left = [seat for seat in left if seat not in taken]
        # Others were parked, or somebody else has taken them meanwhile: what stands behind them is not known yet.
        if not left or len(started) == len(found):
            break
    else:
        _announce({queue for queue, _ in left}, using)  # who hears it looks on
    return as_claims(rows)


def _announce(queues: Collection[str], using: str) -> None:
    in_transaction(using, lambda cursor: notify(cursor, WORK, queues))


def _search(offer: Sequence[tuple[str, int]], params: dict[str, Any]) -> Callable[[CursorWrapper], list[Any]]:
    places = by_queue(offer)
    slots = [f"{{{','.join(map(str, numbers))}}}" for numbers in places.values()]
    seats = {"queues": as_array(filled(list(places))), "slots": as_array(filled(slots))}
    return lambda cursor: fetch(cursor, CLAIM_NEXT, params | seats)


def _split(rows: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[Gated]]:
    """What a claim has started, and what must be let through gates first."""
    started = [row for row in rows if row[4] is not None]
    return started, [at_gates(row) for row in rows if row[4] is None]


def claim(
    wanted: Sequence[Wanted | tuple[UUID, UUID, int]],
    *,
    types: Sequence[str] | None = None,
    worker_id: UUID,
    claim_id: UUID,
    label: Mapping[str, Any],
    lease: float,
    using: str = "default",
) -> list[Claim]:
    """Claim jobs by (id, dispatch token, slot number, queue): those that are Enqueued with just that token.

    A duplicate, an old token and a job that is gone are left out of the answer, as are jobs of a paused queue, of
    another queue than the slot's, and of other types than `types` (None: any). `left` says which of them wait on. So
    is what a full key or a limit keeps from starting: it is parked.
    """
    if not wanted:
        return []
    named = filled_arrays(("ids", "tokens", "slots", "queues"), [Wanted(*one) for one in wanted])
    params = owned_by(worker_id, claim_id, label, lease) | named | {"types": None if types is None else list(types)}

    started, gated = _split(in_transaction(using, lambda cursor: fetch(cursor, CLAIM_BY_ID, params), single=True))
    if gated:
        started += admit(gated, owned_by(worker_id, claim_id, label, lease), waits=True, using=using)
    return as_claims(started)


def left(out: Sequence[Wanted], *, types: Sequence[str], using: str = "default") -> set[UUID]:
    """Of what a claim of `types` has left out, the tokens that wait on for a worker: their queue is paused, or what
    kept them back has ended a moment ago.

    Jobs of other types, of types whose breaker is not closed, and those that another pause holds back are parked. The
    others are not Enqueued with that token, or in another queue than was said.
    """
    if not out:
        return set()

    def work(cursor: CursorWrapper) -> list[tuple[Any, ...]]:
        return fetch(cursor, LEFT_OUT, arrays(("ids", "tokens", "slots", "queues"), out))

    rows = in_transaction(using, work)
    parked = park_paused([(id_, token) for id_, token, _type, _kept, held in rows if held], using=using)
    rows = [row for row in rows if row[0] not in parked]
    unknown = [(id_, token) for id_, token, type_, _kept, _held in rows if type_ not in types]
    park_unknown(unknown, using=using)
    broken = {(id_, token): type_ for id_, token, type_, kept, _held in rows if type_ in types and kept}
    parked = park_circuit(list(broken), types=set(broken.values()), using=using)
    gone = {token for _id, token in unknown} | {token for id_, token in broken if id_ in parked}
    return {row[1] for row in rows} - gone


def paused(queues: Sequence[str], *, using: str = "default") -> set[str]:
    """Those of these queues that are paused now."""

    def work(cursor: CursorWrapper) -> set[str]:
        return {queue for (queue,) in fetch(cursor, PAUSED, {"queues": list(queues)})}

    return in_transaction(using, work, single=True)
