"""Who is woken for a slot of a key may get the worker's slot as well: the one that is free with the same end.

What a wake and a claim are one after the other is one statement then, in the transaction of the end, and it leaves the
same behind: both steps in the time line, the token, the owner, the lease. Nobody has to be told, nothing goes through a
broker, and nobody else looks for it in vain. What a claim asks is asked here too, but for what the gates have answered.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.outcomes import Claim
from jobs.serving import QUEUE_PAUSED
from jobs.transitions.circuits import KEPT_BACK
from jobs.transitions.gatekeeper import Gated
from jobs.transitions.keys import RATED, SLOTS, Slot
from jobs.transitions.pauses import HELD_BACK
from jobs.transitions.seats import BEGUN, ROW, STARTED, as_claims
from jobs.transitions.sql import arrays, fetch, unnest

WOKEN = {"id": "uuid", "token": "uuid"}
FREE = {"queue": "text", "seat": "int", "room": "int"}
# Of parked jobs, the best first, those that this worker may start at once: whatever stands before one in its queue has
# another slot of this worker. A rate is paid in a claim; what was lost before may have to run alone. The rest is as in
# keys.WAKE, and then as in seats.SEATED.
SUCCEED = f"""
WITH seats AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY queue ORDER BY seat) AS place FROM {unnest("f", FREE)}
), fit AS MATERIALIZED (
    SELECT j.id, w.token, j.queue, row_number() OVER (
        PARTITION BY j.queue ORDER BY j.priority DESC, COALESCE(j.enqueued_at, j.created_at), j.id
    ) AS place
    FROM {unnest("w", WOKEN)} JOIN turno.jobs AS j ON j.id = w.id
    JOIN (SELECT DISTINCT queue, room FROM seats) AS r ON r.queue = j.queue
    WHERE j.id = ANY(%(id)s::uuid[]) AND COALESCE(j.state, '') = 'Scheduled' AND j.lost_count = 0
      AND COALESCE(j.type, '') = ANY(%(types)s::text[]) AND j.type <> ALL (ARRAY({RATED}))
      AND j.queue <> ALL (ARRAY(SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED}))
      AND NOT {KEPT_BACK} AND NOT {HELD_BACK}
      AND (
          SELECT count(*) FROM (
              SELECT priority, enqueued_at, id FROM turno.jobs WHERE state = 'Enqueued' AND queue = r.queue
              ORDER BY priority DESC, enqueued_at, id LIMIT r.room + 1
          ) AS a WHERE (-a.priority, a.enqueued_at, a.id) < (-j.priority, COALESCE(j.enqueued_at, j.created_at), j.id)
      ) <= r.room
), moved AS (
    UPDATE turno.jobs AS j
    SET dispatch_id = c.token, admitted = c.token, announced_at = NULL,
        enqueued_at = COALESCE(j.enqueued_at, j.created_at), waiting_for = NULL, gate = NULL, slot = c.seat, {BEGUN}
    FROM (SELECT id, token, seat FROM fit JOIN seats USING (queue, place)) AS c
    WHERE j.id = c.id AND COALESCE(j.state, '') = 'Scheduled' AND j.run_at IS NULL
    RETURNING {ROW}
), slots AS (
    INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id)
    SELECT s.key, s.number, s.job, s.held_by FROM {unnest("s", SLOTS)} JOIN moved AS m ON m.id = s.job
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, worker_id, execution)
    SELECT id, from_state, to_state, reason, worker_id, execution FROM (
        SELECT id, 1 AS step, 'Scheduled' AS from_state, 'Enqueued' AS to_state, 'gate_opened' AS reason,
            NULL::uuid AS worker_id, NULL::int AS execution FROM moved
        UNION ALL
        SELECT id, 2, 'Enqueued', 'Processing', 'claimed', %(worker_id)s::uuid, executions FROM moved
    ) AS steps ORDER BY id, step
)
SELECT {STARTED} FROM moved
"""


class Seats(NamedTuple):
    """What a worker offers with ends: by their tokens its slots (queue, number) that are free with them; how many
    others of each queue are free; the types that it has; and who it is (`seats.owned_by`)."""

    slots: Mapping[UUID, tuple[str, int]]
    room: Mapping[str, int]
    types: Sequence[str]
    owner: Mapping[str, Any]


class Successors:
    """Of one transaction: who has started in a slot of `offered` whose execution has ended in it."""

    def __init__(self, offered: Seats) -> None:
        self._offered = offered
        self._free: set[tuple[str, int]] = set()
        self._started: dict[tuple[str, int], Claim] = {}

    def free(self, tokens: Iterable[UUID]) -> None:
        """These executions are ended: their fence held, so that the slot is surely this worker's."""
        self._free.update(filter(None, map(self._offered.slots.get, tokens)))

    def start(self, cursor: CursorWrapper, woken: Sequence[Gated], slots: Sequence[Slot]) -> set[UUID]:
        """Of parked jobs, which are locked and let through all gates, start those that there is a seat for, with their
        slots of keys; their ids. The others are to be woken."""
        queues = {queue for queue, _ in self._free}
        fit = [(job.id, job.token) for job in woken if job.queue in queues]
        if not fit:
            return set()
        free = [(queue, number, self._offered.room.get(queue, 0)) for queue, number in sorted(self._free)]
        params = arrays(WOKEN, fit) | arrays(FREE, free) | arrays(SLOTS, slots) | {"types": list(self._offered.types)}
        rows = fetch(cursor, SUCCEED, params | dict(self._offered.owner))
        claims = as_claims(rows)
        self._free -= {(claim.queue, claim.slot) for claim in claims}
        self._started |= {(claim.queue, claim.slot): claim for claim in claims}
        return {claim.id for claim in claims}

    def claims(self) -> dict[UUID, Claim]:
        """Who has started, by the token of the execution whose slot it has."""
        places = self._offered.slots.items()
        return {token: self._started[place] for token, place in places if place in self._started}
