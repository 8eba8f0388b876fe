"""Which queues and types live workers serve, and what waits for a type that none has: texts of SQL, one rule for all.

A worker is alive that gave a sign of life within `silent` seconds. One that drains counts as having its types, since
it runs jobs of them and a successor is likely to come; it takes nothing more, and so opens no gate.
"""

# Of a pause `p`: whether it holds. One that has run out is none, whether or not its row has been cleaned away.
IN_FORCE = "(p.until IS NULL OR p.until > now())"
QUEUE_PAUSED = f"p.scope = 'queue' AND {IN_FORCE}"
# After WITH. `live` has the queues and types of live workers, those of equal workers once: a row of a person's making
# may say anything of queues.
LIVE = """live AS MATERIALIZED (
    SELECT DISTINCT w.takes, q.queue, w.types
    FROM (
        SELECT DISTINCT state = 'Online' AS takes, queues, types FROM turno.workers
        WHERE state <> 'Offline' AND seen_at > now() - %(silent)s::float8 * interval '1 second'
    ) AS w
    CROSS JOIN LATERAL jsonb_each_text(
        CASE WHEN jsonb_typeof(w.queues) = 'object' THEN w.queues ELSE '{}'::jsonb END
    ) AS q(queue, slots)
    WHERE q.slots ~ '^[1-9]'
)"""
# A type of a queue that a live worker of the queue has; `takes`: one that takes work; `takers`: how many of `live` do.
SERVED = """served AS MATERIALIZED (
    SELECT l.queue, t.type, bool_or(l.takes) AS takes, count(*) FILTER (WHERE l.takes) AS takers
    FROM live AS l CROSS JOIN unnest(l.types) AS t(type) GROUP BY l.queue, t.type
)"""
# A queue that work is taken from. While it is paused nobody could start a job of it, whatever types there are.
SERVING = f"""serving AS MATERIALIZED (
    SELECT DISTINCT queue FROM live
    WHERE takes AND queue <> ALL (ARRAY(SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED}))
)"""
# Of a job `e`: it was woken for whatever it waited for and has not started. As the index of what was ever woken has it.
WOKEN = """e.admitted IS NOT NULL AND e.finished_at IS NULL AND e.waiting_for IS NULL
    AND COALESCE(e.state, '') = 'Enqueued' AND e.admitted = e.dispatch_id"""
# Of a job `e` with a key: it is Enqueued. By the index of those, which no other can stand in for: the one of all that
# is Enqueued would be read from end to end while the statistics are older than the backlog.
IN_QUEUE = "e.waiting_for IS NULL AND e.finished_at IS NULL AND COALESCE(e.state, '') = 'Enqueued'"
SOON = 10.0  # seconds: so long a job that is Enqueued without a slot counts as one that is about to take one
MOST_COMING = 500  # of a key that are counted
# Parked jobs of an unknown type, as their index has them.
UNKNOWN = "state = 'Scheduled' AND waiting_for = 'unknown_type'"
# A row of `unserved_types` that holds now: whoever leads was there not long ago.
WATCHED = "u.seen_at > now() - %(unwatched)s::float8 * interval '1 second'"
# What live workers of a queue can't import: the type may be declared there.
UNLOADED = """
SELECT DISTINCT q.queue, p.problem ->> 'module', p.problem ->> 'error'
FROM unnest(%(queues)s::text[]) AS q(queue) JOIN turno.workers AS w ON w.queues ? q.queue
CROSS JOIN LATERAL jsonb_array_elements(
    CASE WHEN jsonb_typeof(w.problems) = 'array' THEN w.problems ELSE '[]'::jsonb END
) AS p(problem)
WHERE w.state <> 'Offline' AND w.seen_at > now() - %(silent)s::float8 * interval '1 second'
  AND p.problem ? 'module' AND p.problem ? 'error'
ORDER BY 1, 2, 3
"""


def coming(key: str, only: str = "true") -> str:
    """The SQL of those of a concurrency key (SQL of its value) that were let through no gate, such as those that are
    due just now: they are about to be claimed, and were here first. `only`: SQL of whether any are asked for.

    Columns queue, type, priority, and `lately`: not for long, since all workers of their queue may be busy, or none may
    be there.
    """
    return f"""
SELECT e.queue, e.type, e.priority, e.enqueued_at > now() - interval '{SOON} seconds'
    AND e.queue <> ALL (ARRAY(SELECT p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED})) AS lately
FROM turno.jobs AS e
WHERE {only} AND {IN_QUEUE} AND e.concurrency_key = {key} AND e.admitted IS DISTINCT FROM e.dispatch_id
ORDER BY e.enqueued_at DESC LIMIT {MOST_COMING}
"""


def unwatched_after(silent_after: float, leadership_lease: float) -> float:
    """Seconds without a look after which nobody knows any more what was served: longer than the change of a leader."""
    return silent_after + 2 * leadership_lease
