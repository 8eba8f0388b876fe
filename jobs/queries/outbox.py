"""What waits for the broker: how much, since when, and what the broker does not take."""

from dataclasses import dataclass

from django.db import connections

from jobs.bounds import DEAD_LETTER
from jobs.conf import conf
from jobs.queries.estimates import COUNTED

# Of the oldest messages alone: whatever piles up behind them, this reads no more. What fails is old.
OUTBOX = """
WITH oldest AS MATERIALIZED (
    SELECT id, CASE kind WHEN 'dead_letter' THEN %(letters)s ELSE queue END AS queue, created_at, failures, last_error
    FROM turno.outbox_messages ORDER BY id LIMIT %(most)s
)
SELECT queue, count(*), GREATEST(0, extract(epoch FROM now() - min(created_at)))::float8,
    count(*) FILTER (WHERE failures > 0),
    (SELECT last_error FROM oldest WHERE failures > 0 ORDER BY id DESC LIMIT 1)
FROM oldest GROUP BY queue ORDER BY queue
"""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """The messages of one queue: how many `waiting`, the age of the oldest (seconds), how many of them `failing`."""

    queue: str
    waiting: int
    oldest_age: float
    failing: int


@dataclass(frozen=True, slots=True)
class Outbox:
    """The messages that wait for the broker. `oldest_age` in seconds, None without any; `failing`: those that the
    broker refused at the last try, and `last_error`, what it said of the newest of them.

    `at_least`: there are more than the 10,000 oldest, and these alone were counted. `queues` by name; dead letters
    stand under `bounds.DEAD_LETTER`.
    """

    waiting: int
    at_least: bool
    oldest_age: float | None
    failing: int
    last_error: str | None
    queues: tuple[Undelivered, ...]


def outbox() -> Outbox:
    """The figures of the outbox, of its 10,000 oldest messages; without a broker there is nothing that waits for it."""
    if not conf().messaging.broker:  # rows that an earlier one left are dropped by their tokens, should it come back
        return Outbox(0, False, None, 0, None, ())
    with connections["default"].cursor() as cursor:
        cursor.execute(OUTBOX, {"most": COUNTED + 1, "letters": DEAD_LETTER})
        found = cursor.fetchall()
    queues = tuple(Undelivered(*row[:4]) for row in found)
    waiting = sum(queue.waiting for queue in queues)
    return Outbox(
        min(waiting, COUNTED),
        waiting > COUNTED,
        max((queue.oldest_age for queue in queues), default=None),
        min(sum(queue.failing for queue in queues), COUNTED),
        found[0][4] if found else None,
        queues,
    )
