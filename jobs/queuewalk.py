"""The queues that have waiting jobs, walked by the index of the claims: one step a queue, however deep it is.

Texts of SQL, for the verbs and the reads alike. The walk takes the parameter `queues`: so many of them at most.
"""

from jobs.bounds import PRIORITIES

MANY = 500  # queues: what a page shows, and what a routine looks at in one call
ALL = 2**31 - 1
# After WITH RECURSIVE; `names` has the queues by name.
NAMES = """names AS (
    (SELECT queue, 1 AS place FROM turno.jobs WHERE state = 'Enqueued' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT next.queue, n.place + 1 FROM names AS n CROSS JOIN LATERAL (
        SELECT queue FROM turno.jobs WHERE state = 'Enqueued' AND queue > n.queue ORDER BY queue LIMIT 1
    ) AS next
    WHERE n.place < %(queues)s
)"""
LEVELS = f"generate_series({PRIORITIES[0]}, {PRIORITIES[1]}) AS p(priority)"
# When the oldest waiting job of the queue `n` came: it is the head of one of its priorities.
OLDEST = f"""
    SELECT min(head.enqueued_at) AS at FROM {LEVELS} CROSS JOIN LATERAL (
        SELECT enqueued_at FROM turno.jobs AS j
        WHERE j.state = 'Enqueued' AND j.queue = n.queue AND j.priority = p.priority
        ORDER BY j.enqueued_at LIMIT 1
    ) AS head
"""
