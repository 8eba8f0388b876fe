"""Jobs whose type no worker of their queue knows: parked, brought back when one does, failed after a grace.

The gate is no row: nobody's notification opens it. Whoever leads looks every two seconds which workers there are, so
that nothing is missed by parking a moment too late. What it saw is kept in `unserved_types`: since when a queue is
served, and a type that its jobs have is not, without a break.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _

from jobs.fingerprint import fingerprint
from jobs.ids import new_id
from jobs.queuewalk import LEVELS
from jobs.serving import LIVE, SERVED, SERVING, UNKNOWN, UNLOADED, WATCHED
from jobs.states import Waiting
from jobs.text import clean
from jobs.transitions.gates import parked, wake_by, woken
from jobs.transitions.outbox import LETTERED, NAMED_JOBS, broker, enqueued
from jobs.transitions.parents import after_ends
from jobs.transitions.sql import arrays, fetch, in_transaction, notify_all, unnest

HEAD = 200  # jobs of a queue that are looked at in one call, in the order in which they are claimed
TYPES = 500  # parked ones of a queue that are watched
REST = 60.0  # seconds: the longest that a job stays here whose queue a worker serves that has its type
ERROR_TYPE = "UnknownType"
MODULES = 3  # that can't be imported, named in an error
# A row that is there is not touched: a worker that has just come writes it, and nobody waits for the other.
SEEN = """
INSERT INTO turno.job_types (name)
SELECT DISTINCT j.type FROM turno.jobs AS j
WHERE j.id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (SELECT FROM turno.job_types AS t WHERE t.name = j.type)
ORDER BY j.type ON CONFLICT (name) DO NOTHING
"""
PARK_UNKNOWN = f"""
WITH picked AS MATERIALIZED ({NAMED_JOBS}) {parked(Waiting.UNKNOWN_TYPE)}
"""
# A broker hands a message to any worker of the queue. While one of them lacks the type, a job that has come back here
# lately stays for longer each time: 1 s, 3 s, 7 s … else it would go to and fro as long as those that have it are full.
RESTED = """(
    NOT (%(broker)s AND s.mixed) OR enqueued_at <= now() - %(rest)s::float8 * interval '1 second'
    OR enqueued_at <= now() - (power(2, (
        SELECT count(*) FROM (
            SELECT FROM turno.job_state_changes AS c
            WHERE c.job_id = jobs.id AND c.reason = 'gate_opened' AND c.at > now() - interval '10 minutes' LIMIT 6
        ) AS x
    )) - 1) * interval '1 second'
)"""
# Each queue and type that a live worker has is looked up in the index of these jobs: what nobody serves is not read.
OPEN_UNKNOWN = f"""
WITH {LIVE}, {SERVED}, takers AS MATERIALIZED (
    SELECT queue, count(*) AS takers FROM live WHERE takes GROUP BY queue
), open AS MATERIALIZED (
    SELECT s.queue, s.type, s.takers < t.takers AS mixed FROM served AS s JOIN takers AS t USING (queue)
    WHERE s.takes AND (SELECT queue FROM turno.jobs WHERE {UNKNOWN} ORDER BY queue, gate LIMIT 1) IS NOT NULL
), chosen AS MATERIALIZED (
    SELECT j.id FROM open AS s CROSS JOIN LATERAL (
        SELECT id, priority, enqueued_at FROM turno.jobs
        WHERE {UNKNOWN} AND queue = s.queue AND gate = s.type AND {RESTED}
        ORDER BY priority DESC, enqueued_at, id LIMIT %(limit)s
    ) AS j
    ORDER BY j.priority DESC, j.enqueued_at, j.id LIMIT %(limit)s
) {woken(Waiting.UNKNOWN_TYPE)}
"""
HEADS = """
    SELECT id, type, concurrency_key, tags, priority, enqueued_at FROM turno.jobs
    WHERE state = 'Enqueued' AND queue = q.queue ORDER BY priority DESC, enqueued_at, id LIMIT %(head)s
"""
# The types of parked jobs are walked by their index, one step a type; those that wait in a queue are seen at its head.
# A row is written again when it is about to look old, and anew when it was without a look for too long.
WATCH = f"""
WITH RECURSIVE {LIVE}, {SERVED}, {SERVING}, parked AS (
    SELECT q.queue, first.gate, 1 AS place FROM serving AS q CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE {UNKNOWN} AND queue = q.queue AND gate IS NOT NULL ORDER BY gate LIMIT 1
    ) AS first
    UNION ALL
    SELECT p.queue, next.gate, p.place + 1 FROM parked AS p CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE {UNKNOWN} AND queue = p.queue AND gate > p.gate ORDER BY gate LIMIT 1
    ) AS next
    WHERE p.place < %(types)s
), met AS MATERIALIZED (
    SELECT queue, gate AS type FROM parked
    UNION
    SELECT q.queue, h.type FROM serving AS q CROSS JOIN LATERAL ({HEADS}) AS h
), unserved AS MATERIALIZED (
    SELECT queue, type FROM met EXCEPT SELECT queue, type FROM served
), kept AS (
    INSERT INTO turno.unserved_types AS u (queue, type)
    SELECT n.queue, n.type FROM unserved AS n WHERE NOT EXISTS (
        SELECT FROM turno.unserved_types AS k WHERE k.queue = n.queue AND k.type = n.type
          AND k.seen_at >= now() - %(unwatched)s::float8 / 5 * interval '1 second'
    ) ORDER BY n.queue, n.type
    ON CONFLICT (queue, type) DO UPDATE
    SET since = CASE WHEN {WATCHED} THEN u.since ELSE now() END, seen_at = now()
    WHERE u.seen_at < now() - %(unwatched)s::float8 / 5 * interval '1 second'
)
DELETE FROM turno.unserved_types AS u
WHERE NOT EXISTS (SELECT FROM unserved AS n WHERE n.queue = u.queue AND n.type = u.type)
"""
# Queues and types that were watched for so long, looked at once more by what workers there are now.
LONG_UNSERVED = f"""{LIVE}, {SERVED}, {SERVING}, long AS MATERIALIZED (
    SELECT u.queue, u.type FROM turno.unserved_types AS u JOIN serving AS q USING (queue)
    WHERE u.since <= now() - %(since)s::float8 * interval '1 second' AND {WATCHED}
      AND NOT EXISTS (SELECT FROM served AS s WHERE s.queue = u.queue AND s.type = u.type)
)"""
PARK_UNSERVED = f"""
WITH {LONG_UNSERVED}, heads AS MATERIALIZED (
    SELECT h.id FROM (SELECT DISTINCT queue FROM long) AS q CROSS JOIN LATERAL ({HEADS}) AS h
    WHERE EXISTS (SELECT FROM long AS l WHERE l.queue = q.queue AND l.type = h.type)
    ORDER BY h.priority DESC, h.enqueued_at, h.id LIMIT %(limit)s
), picked AS MATERIALIZED (
    SELECT id FROM turno.jobs
    WHERE id = ANY (ARRAY(SELECT id FROM heads)) AND COALESCE(state, '') = 'Enqueued'
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
) {parked(Waiting.UNKNOWN_TYPE)}
"""
# The oldest of each priority, so that no younger one stands before it.
OVER = f"""
WITH {LONG_UNSERVED}, old AS MATERIALIZED (
    SELECT j.id FROM long AS l CROSS JOIN {LEVELS} CROSS JOIN LATERAL (
        SELECT id FROM turno.jobs
        WHERE {UNKNOWN} AND queue = l.queue AND gate = l.type AND priority = p.priority
          AND enqueued_at <= now() - %(since)s::float8 * interval '1 second'
        ORDER BY enqueued_at, id LIMIT %(limit)s
    ) AS j
    LIMIT %(limit)s
)
SELECT id, type, queue FROM turno.jobs
WHERE id = ANY (ARRAY(SELECT id FROM old)) AND COALESCE(state, '') = 'Scheduled' AND waiting_for = 'unknown_type'
  AND enqueued_at <= now() - %(since)s::float8 * interval '1 second'
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
COLUMNS = {"id": "uuid", "letter_id": "uuid", "message": "text", "fingerprint": "text"}
FAIL = f"""
WITH over AS (
    SELECT * FROM {unnest("i", COLUMNS)}
), changed AS (
    UPDATE turno.jobs AS j
    SET state = 'Failed', finished_at = now(), dispatch_id = NULL, waiting_for = NULL, gate = NULL,
        failure_kind = 'unknown_type', error_type = %(error_type)s, error_message = o.message
    FROM over AS o WHERE j.id = o.id AND COALESCE(j.state, '') = 'Scheduled'
    RETURNING j.id, j.type, j.queue, j.executions, o.letter_id, o.message, o.fingerprint
), history AS (
    INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, detail)
    SELECT id, 'Scheduled', 'Failed', 'unknown_type', left(message, 500) FROM changed ORDER BY id
), letters AS (
    INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, error_type, error_message, fingerprint,
        attempts)
    SELECT letter_id, id, type, queue, 'unknown_type', %(error_type)s, message, fingerprint, executions FROM changed
    ON CONFLICT (job_id) WHERE resolved_at IS NULL DO NOTHING
    RETURNING id, job_id, type, queue, failure_kind, error_type, error_message, stack, fingerprint, attempts, created_at
) {LETTERED}
SELECT id FROM changed ORDER BY id
"""


def park_unknown(pairs: Sequence[tuple[UUID, UUID]], *, using: str = "default") -> set[UUID]:
    """Park jobs (id, dispatch token) whose type their worker does not know; answers those it did.

    Their rows are waited for, as by a claim: the message is acknowledged after this, and names the job no more.
    `open_unknown` brings them back once a live worker serves their queue and type.
    """

    named = arrays(("ids", "tokens"), pairs)
    return set(in_transaction(using, lambda cursor: _parked(cursor, PARK_UNKNOWN, named))) if pairs else set()


def open_unknown(*, limit: int, silent_after: float, using: str = "default") -> int:
    """Enqueue jobs parked for an unknown type that a worker serves now, in their queue; returns how many.

    A worker counts whose last sign of life is less than `silent_after` seconds old. At most `limit`, by priority and
    age: call again at once while it is as many. The leader's, every two seconds. Where a broker may hand them to a
    worker that lacks their type, those that were here in the last minutes stay longer each time, up to a minute.
    """

    params = {"limit": limit, "silent": float(silent_after), "rest": REST}
    return in_transaction(using, lambda cursor: wake_by(cursor, OPEN_UNKNOWN, params))


def watch_unserved(*, silent_after: float, unwatched_after: float, using: str = "default") -> None:
    """Keep the book of types that jobs of a served queue have and none of its live workers has, and since when.

    A type is watched anew after `unwatched_after` seconds without a look, after a pause of the queue, and after a time
    when it was served or the queue was not. The leader's, every two seconds.
    """

    def work(cursor: CursorWrapper) -> None:
        cursor.execute(WATCH, watched(silent_after, unwatched_after) | {"types": TYPES, "head": HEAD})

    in_transaction(using, work)


def park_unserved(
    *, limit: int, unserved_for: float, silent_after: float, unwatched_after: float, using: str = "default"
) -> list[UUID]:
    """Park waiting jobs at the head of a served queue whose type none of its live workers has; answers which.

    Only of types that `watch_unserved` has had in its book for `unserved_for` seconds: a worker that is started again
    parks nothing. What somebody has locked is being claimed or cancelled. At most `limit`: call again at once while it
    is as many. The leader's.
    """

    params = watched(silent_after, unwatched_after) | {"since": float(unserved_for), "head": HEAD, "limit": limit}
    return in_transaction(using, lambda cursor: _parked(cursor, PARK_UNSERVED, params))


def fail_unknown(
    *, limit: int, grace: float, silent_after: float, unwatched_after: float, using: str = "default"
) -> list[UUID]:
    """End parked jobs of an unknown type Failed, with a dead letter, after `grace` seconds; answers which.

    So long the queue was served and the type was not, and so long the job has waited since it was last enqueued. No
    attempt is counted. At most `limit`: call again at once while it is as many. The leader's.
    """

    def work(cursor: CursorWrapper) -> list[UUID]:
        params = watched(silent_after, unwatched_after) | {"since": float(grace), "limit": limit}
        found = fetch(cursor, OVER, params)
        if not found:
            return []
        unloaded = _unloaded(cursor, params | {"queues": sorted({queue for _id, _type, queue in found})})
        over = [
            (id_, new_id(), _said(type_, queue) + unloaded.get(queue, ""), fingerprint(type_, ERROR_TYPE, ""))
            for id_, type_, queue in found
        ]
        ended = arrays(COLUMNS, over) | {"error_type": ERROR_TYPE, "broker": broker()}
        failed = [id_ for (id_,) in fetch(cursor, FAIL, ended)]
        notify_all(cursor, enqueued((), letters=bool(failed)))
        after_ends(cursor, failed)
        return failed

    return in_transaction(using, work)


def _parked(cursor: CursorWrapper, statement: str, params: dict[str, Any]) -> list[UUID]:
    ids = [id_ for (id_,) in fetch(cursor, statement, params)]
    if ids:
        cursor.execute(SEEN, {"ids": ids})
    return ids


def watched(silent_after: float, unwatched_after: float) -> dict[str, Any]:
    """The parameters of `LONG_UNSERVED`, but for `since`."""
    return {"silent": float(silent_after), "unwatched": float(unwatched_after)}


def _unloaded(cursor: CursorWrapper, params: dict[str, Any]) -> dict[str, str]:
    """By queue, a sentence on the modules that its live workers can't import; none where there is none."""
    modules: dict[str, list[str]] = {}
    for queue, module, error in fetch(cursor, UNLOADED, params):
        modules.setdefault(queue, []).append(clean(f"{module}, {error}", 300, one_line=True))
    return {
        queue: " " + _("Handler not loadable: %(modules)s.") % {"modules": "; ".join(named[:MODULES])}
        for queue, named in modules.items()
    }


def _said(type_name: str, queue: str) -> str:
    return _(
        "No live worker of the queue %(queue)s knows the type %(type)s. "
        "Start one whose handlers have it, then requeue the job."
    ) % {"queue": queue, "type": type_name}
