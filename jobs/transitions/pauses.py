"""Pauses: of a queue, which nobody takes from then, and of a type, a tag or a key, as gates that jobs are parked at.

Claims look at them inside their statement. Whoever parks for one first locks its row FOR SHARE and reads it again;
whoever lifts one, a person or the clock, takes its row away first and wakes in a later statement.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.serving import IN_FORCE, LIVE, SERVING
from jobs.states import Waiting
from jobs.transitions.gates import parked, wake_by, walked, woken
from jobs.transitions.outbox import NAMED_JOBS
from jobs.transitions.queues import queue_changed
from jobs.transitions.sql import CONTROL, WORK, arrays, fetch, in_transaction, notify_all
from jobs.transitions.unknown import HEAD, HEADS

WAKES = 1000  # jobs that are woken in one transaction
BATCHES = 5  # of them besides the first, by who lifts a pause: a person waits for it, and the leader wakes the rest
EXPIRES = 100  # pauses that run out in one call

# Of a job `j`: whether a pause keeps it from starting. Each list is read once a statement. An empty key is no pause's
# value, so that a job without one is never held back by a key. A CASE, so that the planner does not guess how many jobs
# that leaves: of a list that it does not know it believes that hardly any is, and would sort the whole queue for them.
HELD_BACK = f"""(CASE
    WHEN j.type = ANY (ARRAY(SELECT p.value FROM turno.pauses AS p WHERE p.scope = 'type' AND {IN_FORCE})) THEN true
    WHEN COALESCE(j.concurrency_key, '') = ANY (
        ARRAY(SELECT p.value FROM turno.pauses AS p WHERE p.scope = 'key' AND {IN_FORCE})
    ) THEN true
    ELSE j.tags && ARRAY(SELECT p.value FROM turno.pauses AS p WHERE p.scope = 'tag' AND {IN_FORCE})
END)"""

# What is in force stays as old as it is; what had run out begins anew.
PAUSE = f"""
INSERT INTO turno.pauses AS p (scope, value, reason, paused_by, until)
SELECT %(scope)s::text, %(value)s::text, %(reason)s::text, %(actor)s::text, %(until)s::timestamptz
WHERE %(until)s::timestamptz IS NULL OR %(until)s::timestamptz > now()
ON CONFLICT (scope, value) DO UPDATE
SET reason = EXCLUDED.reason, paused_by = EXCLUDED.paused_by, until = EXCLUDED.until,
    created_at = CASE WHEN {IN_FORCE} THEN p.created_at ELSE now() END
RETURNING scope, value, reason, paused_by, created_at, until
"""
RESUME = """
DELETE FROM turno.pauses WHERE scope = %(scope)s AND value = %(value)s
RETURNING scope, value, reason, paused_by, created_at, until
"""
# One that somebody parks for, or that a person makes longer just now, is looked at again.
EXPIRE = """
WITH over AS MATERIALIZED (
    SELECT id FROM turno.pauses WHERE until <= now() ORDER BY until, id LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
DELETE FROM turno.pauses WHERE id = ANY (ARRAY(SELECT id FROM over))
RETURNING scope, value, reason, paused_by, created_at, until
"""
# By the index of what is parked at pauses, and no other: the state is tested where the rows are locked. They keep their
# place: by the time for which they have waited they are the first of their queue.
WAKE = f"""
WITH chosen AS MATERIALIZED (
    SELECT j.id FROM unnest(%(gates)s::text[]) AS g(gate) CROSS JOIN LATERAL (
        SELECT id, priority, created_at FROM turno.jobs
        WHERE waiting_for = 'pause' AND gate = g.gate ORDER BY priority DESC, created_at, id LIMIT %(limit)s
    ) AS j
    WHERE NOT EXISTS (SELECT FROM turno.pauses AS p WHERE p.scope || ':' || p.value = g.gate)
    ORDER BY j.priority DESC, j.created_at, j.id LIMIT %(limit)s
)
{woken(Waiting.PAUSE, keeps_place=True)}
"""
# The gates of parked jobs are walked by their index, one step a gate.
LEFT_BEHIND = f"""
WITH RECURSIVE {walked(Waiting.PAUSE)}
SELECT g.gate FROM gates AS g
WHERE NOT EXISTS (SELECT FROM turno.pauses AS p WHERE p.scope || ':' || p.value = g.gate)
LIMIT %(most)s
"""

NAMED = "SELECT j.* FROM turno.jobs AS j WHERE j.id = ANY(%(ids)s::uuid[])"
AT_HEADS = f"SELECT h.* FROM serving AS q CROSS JOIN LATERAL ({HEADS}) AS h"
# What this says holds until the transaction ends: nobody lifts one of these between the look and the park.
LOCK_MET = f"""
SELECT p.scope, p.value FROM turno.pauses AS p
WHERE {IN_FORCE} AND (p.scope, p.value) IN (
    SELECT 'type', type FROM met
    UNION SELECT 'key', concurrency_key FROM met WHERE concurrency_key IS NOT NULL
    UNION SELECT 'tag', tag FROM met CROSS JOIN unnest(tags) AS t(tag)
)
ORDER BY p.id FOR SHARE OF p
"""
ANY_GATE = f"SELECT FROM turno.pauses AS p WHERE p.scope <> 'queue' AND {IN_FORCE} LIMIT 1"
LOCK_NAMED = f"WITH met AS MATERIALIZED ({NAMED}) {LOCK_MET}"
LOCK_HEADS = f"WITH {LIVE}, {SERVING}, met AS MATERIALIZED ({AT_HEADS}) {LOCK_MET}"
# The first of the locked ones that a job `j` meets; none is NULL.
GATE = """(
    SELECT p.scope || ':' || p.value FROM unnest(%(scopes)s::text[], %(values)s::text[]) AS p(scope, value)
    WHERE CASE p.scope
        WHEN 'type' THEN j.type = p.value WHEN 'key' THEN j.concurrency_key = p.value ELSE p.value = ANY(j.tags)
    END LIMIT 1
)"""
PARKED = parked(Waiting.PAUSE, gate=GATE)
PARK_NAMED = f"""
WITH named AS MATERIALIZED ({NAMED_JOBS}), picked AS MATERIALIZED (
    SELECT j.id FROM turno.jobs AS j WHERE j.id = ANY (ARRAY(SELECT id FROM named)) AND {GATE} IS NOT NULL
) {PARKED}
"""
PARK_HEADS = f"""
WITH {LIVE}, {SERVING}, heads AS MATERIALIZED (
    SELECT j.id FROM ({AT_HEADS}) AS j WHERE {GATE} IS NOT NULL
    ORDER BY j.priority DESC, j.enqueued_at, j.id LIMIT %(limit)s
), picked AS MATERIALIZED (
    SELECT j.id FROM turno.jobs AS j
    WHERE j.id = ANY (ARRAY(SELECT id FROM heads)) AND COALESCE(j.state, '') = 'Enqueued'
    ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
) {PARKED}
"""
SCOPES = ("type", "key", "tag")  # in this order a job that meets several is parked at the first


class Pause(NamedTuple):
    """A pause as it was written, or as it was when it was lifted. `until` None: until somebody resumes it."""

    scope: str
    value: str
    reason: str
    who: str | None
    since: datetime
    until: datetime | None

    @property
    def gate(self) -> str | None:
        """Where its jobs are parked; None for a queue's, whose jobs stay Enqueued."""
        return None if self.scope == "queue" else f"{self.scope}:{self.value}"


def pause(
    scope: str,
    value: str,
    *,
    reason: str = "",
    actor: str | None = None,
    until: datetime | None = None,
    using: str = "default",
) -> Pause | None:
    """Pause a queue, type, tag or key, or say anew why, by whom and until when; None when `until` is over already.

    No claim that begins after the commit starts a job of it.
    """
    params = {"scope": scope, "value": value, "reason": reason, "actor": actor, "until": until}

    def work(cursor: CursorWrapper) -> Pause | None:
        found = [Pause(*row) for row in fetch(cursor, PAUSE, params)]
        notify_all(cursor, _said(found))
        return found[0] if found else None

    return in_transaction(using, work)


def resume(scope: str, value: str, *, using: str = "default") -> Pause | None:
    """Lift a pause and wake the first thousands of what is parked for it; None when there is none.

    `open_pauses` wakes the rest. What another pause holds is parked again where a worker meets it.
    """
    lifted = in_transaction(using, lambda cursor: _lift(cursor, RESUME, {"scope": scope, "value": value}))
    _wake_rest(lifted, using)
    return lifted[0] if lifted else None


def expire_pauses(*, using: str = "default") -> list[Pause]:
    """Lift the pauses whose time is over, as a person would; answers which. The leader's, every second."""
    lifted = in_transaction(using, lambda cursor: _lift(cursor, EXPIRE, {"most": EXPIRES}))
    _wake_rest(lifted, using)
    return lifted


def open_pauses(*, limit: int, using: str = "default") -> int:
    """Enqueue what is parked for pauses that are gone; returns how many, at most `limit`.

    For what a resume has left: beyond its first batches, by a crash between two of them, or because somebody had a row
    locked. Call again at once while it is as many as `limit`.
    """

    def work(cursor: CursorWrapper) -> int:
        gates = [gate for (gate,) in fetch(cursor, LEFT_BEHIND, {"most": EXPIRES})]
        return wake_by(cursor, WAKE, {"gates": gates, "limit": limit}) if gates else 0

    return in_transaction(using, work)


def park_paused(pairs: Sequence[tuple[UUID, UUID]], *, using: str = "default") -> set[UUID]:
    """Park jobs (id, dispatch token) whose type, key or a tag of which is paused; answers those it did.

    The others are Enqueued with that token no more, or their pause was lifted meanwhile.
    """
    named = arrays(("ids", "tokens"), pairs)

    def work(cursor: CursorWrapper) -> set[UUID]:
        return set(_park(cursor, PARK_NAMED, _met(cursor, LOCK_NAMED, named), named))

    return in_transaction(using, work) if pairs else set()


def park_paused_heads(*, limit: int, silent_after: float, using: str = "default") -> int:
    """Park what a pause holds back at the head of a queue, where every claim would pass it by; returns how many, at
    most `limit`.

    In queues that are not paused and that a worker takes from, seen within `silent_after` seconds. Call again at once
    while there were some: the next may have come to the head. The leader's, every second.
    """
    params = {"limit": limit, "head": HEAD, "silent": float(silent_after)}

    def work(cursor: CursorWrapper) -> int:
        met = _met(cursor, LOCK_HEADS, params) if fetch(cursor, ANY_GATE, {}) else []
        return len(_park(cursor, PARK_HEADS, met, params))

    return in_transaction(using, work)


def _said(pauses: Iterable[Pause]) -> list[tuple[str, str]]:
    """Workers that consume of a broker look at once which of their queues are paused."""
    return [(CONTROL, queue_changed(p.value)) for p in pauses if p.scope == "queue"]


def _lift(cursor: CursorWrapper, statement: str, params: dict[str, Any]) -> list[Pause]:
    """Take the rows away, then, in a later statement, wake the first of who waits."""
    lifted = [Pause(*row) for row in fetch(cursor, statement, params)]
    notify_all(cursor, [*_said(lifted), *((WORK, p.value) for p in lifted if p.scope == "queue")])
    _wake(cursor, lifted)
    return lifted


def _wake(cursor: CursorWrapper, lifted: Collection[Pause]) -> int:
    gates = [pause.gate for pause in lifted if pause.gate is not None]
    return wake_by(cursor, WAKE, {"gates": gates, "limit": WAKES}) if gates else 0


def _wake_rest(lifted: Collection[Pause], using: str) -> None:
    def work(cursor: CursorWrapper) -> int:
        return _wake(cursor, lifted)

    for _ in range(BATCHES):
        if not lifted or in_transaction(using, work) == 0:
            return


def _met(cursor: CursorWrapper, statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The pauses (scope, value) that some jobs meet, locked, in the order in which a job is parked at them."""
    return sorted(fetch(cursor, statement, params), key=lambda row: (SCOPES.index(row[0]), row[1]))


def _park(cursor: CursorWrapper, statement: str, met: Sequence[tuple[Any, ...]], params: dict[str, Any]) -> list[UUID]:
    if not met:
        return []
    return [id_ for (id_,) in fetch(cursor, statement, params | arrays(("scopes", "values"), met))]
