"""Gates with room that somebody waits at are opened: those that a notification has named, and, as a net, all of them.

In a healthy run the sweep finds nothing: who frees a slot hands it over himself, and who parks where there may be room
says so. What it finds is to be counted (`count_found`).
"""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import batched
from typing import NamedTuple

from django.db.backends.utils import CursorWrapper

from jobs.serving import LIVE, SERVING, WOKEN
from jobs.states import Waiting
from jobs.transitions import keys
from jobs.transitions.admission import open_rate
from jobs.transitions.gates import walked
from jobs.transitions.handover import open_in_order, waited_at, with_room
from jobs.transitions.keys import KEY, TYPE
from jobs.transitions.outbox import broker, dispatch, enqueued
from jobs.transitions.sql import fetch, in_transaction, notify_all

SWEPT = "gates_swept"  # also the name of the metric
AT_ONCE = 20  # gates that are opened in one transaction
WALK = 2000  # gates that one sweep looks at; the next goes on behind them
KEY_WAITS = "waiting_for = 'concurrency_key'"
# The gates of parked jobs one step each, by their index; of each whether there is room for its best, and whether that
# is what others have left that were about to take the place and could not: that is nobody's fault.
WALK_KEYS = f"""
WITH RECURSIVE gates AS (
    (SELECT gate, 1 AS place FROM turno.jobs WHERE {KEY_WAITS} AND gate > %(after)s::text ORDER BY gate LIMIT 1)
    UNION ALL
    SELECT next.gate, g.place + 1 FROM gates AS g CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE {KEY_WAITS} AND gate > g.gate ORDER BY gate LIMIT 1
    ) AS next
    WHERE g.place < %(walk)s
)
SELECT g.gate, j.old AND j.concurrency_limit > c.before + (
    SELECT count(*) FROM turno.concurrency_keys AS k JOIN turno.concurrency_slots AS s ON s.key_id = k.id
    WHERE k.kind = 'key' AND k.value = g.gate
), c.coming > 0
FROM gates AS g CROSS JOIN LATERAL (
    SELECT queue, type, priority, concurrency_limit, created_at < now() - %(age)s::float8 * interval '1 second' AS old
    FROM turno.jobs WHERE {KEY_WAITS} AND gate = g.gate ORDER BY priority DESC, created_at, id LIMIT 1
) AS j CROSS JOIN LATERAL (
    SELECT count(*) AS coming, count(*) FILTER (
        WHERE e.lately OR e.queue = j.queue AND e.type = j.type AND e.priority >= j.priority
    ) AS before
    FROM (SELECT 'key' AS kind, g.gate AS value) AS k CROSS JOIN LATERAL ({keys.COMING}) AS e
) AS c
"""
# Types whose limit leaves room, or that have none any more, though somebody waits for it.
WALK_TYPES = f"""
WITH RECURSIVE {walked(Waiting.TYPE_LIMIT)}
SELECT g.gate FROM gates AS g LEFT JOIN turno.job_types AS t ON t.name = g.gate
WHERE (t.max_running IS NULL OR t.max_running > (
    SELECT count(*) FROM turno.concurrency_keys AS k JOIN turno.concurrency_slots AS s ON s.key_id = k.id
    WHERE k.kind = 'type' AND k.value = g.gate
)) AND EXISTS (
    SELECT FROM turno.jobs AS j WHERE j.waiting_for = 'type_limit' AND j.gate = g.gate
      AND j.created_at < now() - %(age)s::float8 * interval '1 second'
)
"""
RATED = f"WITH RECURSIVE {walked(Waiting.RATE)} SELECT gate FROM gates"
# Slots of nobody: their job does not run and was not woken with that token. They don't come of a healthy run. OFFSET 0:
# from each slot to its job, by id, and not over all jobs that are active.
STALE = """
DELETE FROM turno.concurrency_slots AS s
WHERE s.taken_at < now() - interval '10 seconds' AND NOT EXISTS (
    SELECT FROM turno.jobs AS j
    WHERE j.id = s.job_id AND j.dispatch_id = s.dispatch_id AND j.state IN ('Enqueued', 'Processing')
    OFFSET 0
)
RETURNING s.key_id
"""
# Woken with a slot, or for a rate, and then its queue was paused or lost its workers: others could run. It waits on
# without; a new token, since a claim of the old one needs no slot. OFFSET 0: see STALE.
IDLE = f"""
WITH {LIVE}, {SERVING}, idle AS MATERIALIZED (
    SELECT s.job_id AS id, s.dispatch_id AS token
    FROM turno.concurrency_slots AS s CROSS JOIN LATERAL (
        SELECT queue, state, dispatch_id FROM turno.jobs WHERE id = s.job_id OFFSET 0
    ) AS j
    WHERE s.taken_at < now() - interval '10 seconds' AND j.dispatch_id = s.dispatch_id AND j.state = 'Enqueued'
      AND NOT EXISTS (SELECT FROM serving AS q WHERE q.queue = j.queue)
    UNION
    SELECT e.id, e.dispatch_id
    FROM turno.rates AS r CROSS JOIN LATERAL (
        SELECT id, dispatch_id FROM turno.jobs AS e
        WHERE {WOKEN} AND e.type = r.type AND NOT EXISTS (SELECT FROM serving AS q WHERE q.queue = e.queue) OFFSET 0
    ) AS e CROSS JOIN LATERAL (
        SELECT at FROM turno.job_state_changes WHERE job_id = e.id ORDER BY id DESC LIMIT 1
    ) AS last
    WHERE last.at < now() - interval '10 seconds'
    ORDER BY id LIMIT %(limit)s
), locked AS MATERIALIZED (
    SELECT j.id FROM turno.jobs AS j JOIN idle AS i ON i.id = j.id AND i.token = j.dispatch_id
    WHERE COALESCE(j.state, '') = 'Enqueued' ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
), moved AS (
    UPDATE turno.jobs AS j SET dispatch_id = gen_random_uuid(), admitted = NULL, announced_at = NULL
    FROM locked AS l WHERE j.id = l.id RETURNING j.id, j.state, j.dispatch_id, j.queue, j.priority
) {dispatch("moved")}, freed AS (
    DELETE FROM turno.concurrency_slots WHERE job_id = ANY (ARRAY(SELECT id FROM moved)) RETURNING key_id
)
SELECT m.queue, ARRAY(SELECT key_id FROM freed) FROM moved AS m
"""
COUNTED = """
INSERT INTO turno.counters AS c (name, value) VALUES (%(name)s, %(found)s)
ON CONFLICT (name) DO UPDATE SET value = c.value + EXCLUDED.value
"""


def open_keys(
    wanted: Collection[tuple[str, str]], *, limit: int, asleep: Collection[str] = (), using: str = "default"
) -> int:
    """Wake who waits at keys (kind, value) with room, at most `limit` at each; returns how many in all.

    AT_ONCE of them in one transaction: those who end jobs wait for keys that are locked here. `asleep`: queues that
    nobody takes work from; their jobs wait there without a slot.
    """
    if not wanted:
        return 0
    waited = in_transaction(using, lambda cursor: waited_at(cursor, wanted))

    def look(cursor: CursorWrapper, some: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return with_room(cursor, some, depth=limit)

    def work(cursor: CursorWrapper, some: Sequence[tuple[str, str]]) -> int:
        return open_in_order(cursor, some, depth=limit, asleep=asleep)

    opened = 0
    for some in batched(waited, AT_ONCE):  # most are full: of those nothing more is read
        if room := in_transaction(using, partial(look, some=some)):
            opened += in_transaction(using, partial(work, some=room))
    return opened


def open_ids(ids: Collection[int], *, limit: int, asleep: Collection[str] = (), using: str = "default") -> int:
    """The same for keys by their ids; those that are gone are left out."""

    def names(cursor: CursorWrapper) -> list[tuple[str, str]]:
        return [(kind, value) for _id, kind, value in fetch(cursor, keys.NAMES, {"ids": sorted(ids)})]

    return open_keys(in_transaction(using, names), limit=limit, asleep=asleep, using=using) if ids else 0


def open_rates(*, limit: int, using: str = "default") -> tuple[int, float | None]:
    """Wake as many as their rates let start now; how many, and the seconds until the next may (None: none waits)."""
    woken, nearest = 0, None
    for (type_,) in in_transaction(using, lambda cursor: fetch(cursor, RATED, {})):
        count, wait = open_rate(type_, limit=limit, using=using)
        woken += count
        if wait is not None:
            nearest = wait if nearest is None else min(nearest, wait)
    return woken, nearest


class Swept(NamedTuple):
    """What a sweep had to do; behind which key the next begins (empty: from the first); and the gates (kind, value)
    with room that it has left alone, since whoever was told of them may be on the way."""

    found: int
    after: str
    suspects: frozenset[tuple[str, str]]


def sweep(
    *,
    after: str,
    age: float,
    limit: int,
    suspects: Collection[tuple[str, str]] | None = None,
    using: str = "default",
) -> Swept:
    """Open all gates of keys and limits that have room, though the best there has waited for `age` seconds; clear away
    slots that nobody holds. `suspects`: what the sweep before has left alone; None: nothing is."""
    params = {"after": after, "walk": WALK, "age": float(age)}

    def look(cursor: CursorWrapper) -> tuple[list[tuple[str, bool, bool]], list[str]]:
        return fetch(cursor, WALK_KEYS, params), [type_ for (type_,) in fetch(cursor, WALK_TYPES, params)]

    walked, types = in_transaction(using, look)
    stale = in_transaction(using, lambda cursor: [key for (key,) in fetch(cursor, STALE, {})])
    found = len(stale) + open_ids(set(stale), limit=limit, using=using)
    open_keys([(KEY, key) for key, room, left in walked if room and left], limit=limit, using=using)
    room = {*((KEY, key) for key, has_room, left in walked if has_room and not left), *((TYPE, t) for t in types)}
    again = room if suspects is None else room.intersection(suspects)
    found += open_keys(sorted(again), limit=limit, using=using)
    # What was not looked at this time stays suspect until it is.
    rest = {(kind, value) for kind, value in suspects or () if kind == KEY} - {(KEY, key) for key, *_ in walked}
    more = len(walked) == WALK
    return Swept(found, walked[-1][0] if more else "", frozenset(room - again | (rest if more or after else set())))


def count_found(found: int, *, using: str = "default") -> None:
    """Add to the count of what sweeps had to do."""
    in_transaction(using, lambda cursor: cursor.execute(COUNTED, {"name": SWEPT, "found": found}))


def free_idle(*, limit: int, silent_after: float, using: str = "default") -> int:
    """Take slots and starts back from jobs that were woken into a queue from which nobody takes work; how many jobs.

    Nor are they given to others of these queues, each for a while: they would keep those that can run waiting.
    """

    def work(cursor: CursorWrapper) -> tuple[set[str], int, set[int]]:
        rows = fetch(cursor, IDLE, {"limit": limit, "silent": float(silent_after), "broker": broker()})
        notify_all(cursor, enqueued(queue for queue, _ in rows))
        return {queue for queue, _ in rows}, len(rows), set(rows[0][1]) if rows else set[int]()

    asleep, moved, freed = in_transaction(using, work)
    open_ids(freed, limit=limit, asleep=asleep, using=using)
    return moved
