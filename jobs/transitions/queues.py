"""The settings of queues: how many slots each worker has for one, and the priority of jobs that ask for none."""

from collections.abc import Collection
from typing import NamedTuple

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.transitions.sql import CONTROL, fetch, in_transaction, notify

SET = """
INSERT INTO turno.queues AS q (name, slots, default_priority)
VALUES (%(name)s::text, %(slots)s::int, %(priority)s::int)
ON CONFLICT (name) DO UPDATE
SET slots = CASE WHEN %(sets_slots)s::bool THEN EXCLUDED.slots ELSE q.slots END,
    default_priority = CASE WHEN %(sets_priority)s::bool THEN EXCLUDED.default_priority ELSE q.default_priority END
RETURNING name, slots, default_priority
"""
SLOTS = "SELECT name, slots FROM turno.queues WHERE name = ANY(%(names)s::text[]) AND slots IS NOT NULL"


class QueueSettings(NamedTuple):
    """Of a queue: slots a worker (None: each worker's own number), and the priority of jobs that neither a request nor
    their type gives one (None: 0)."""

    name: str
    slots: int | None
    default_priority: int | None


def set_queue(
    name: str,
    *,
    slots: int | None = None,
    default_priority: int | None = None,
    changes: Collection[str] = ("slots", "default_priority"),
    using: str = "default",
) -> QueueSettings:
    """Change the settings of a queue that `changes` names, the others stay; workers of the queue hear of it at once."""
    params = {"name": name, "slots": slots, "priority": default_priority}
    params |= {"sets_slots": "slots" in changes, "sets_priority": "default_priority" in changes}

    def work(cursor: CursorWrapper) -> QueueSettings:
        [row] = fetch(cursor, SET, params)
        notify(cursor, CONTROL, [queue_changed(name)])
        return QueueSettings(*row)

    return in_transaction(using, work)


def slots_of(names: Collection[str], *, using: str = "default") -> dict[str, int]:
    """The slots a worker that somebody has set for these queues, by name; a queue without is left out."""
    return dict(in_transaction(using, lambda cursor: fetch(cursor, SLOTS, {"names": list(names)})))


def queue_changed(name: str) -> str:
    """What is announced on CONTROL when a queue is paused, resumed or set anew."""
    return orjson.dumps({"queue": name}).decode()
