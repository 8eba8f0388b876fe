"""Limits of a type in the whole cluster: how many run at once, how many start in a window. Declared, or set by people.

What holds is what the workers that started last declare, until somebody changes it; that stays until it is given back.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.ratelimit import Limits, RateLimit
from jobs.transitions import keys
from jobs.transitions.rates import Budget
from jobs.transitions.sql import GATES, fetch, in_transaction, notify

KNOWN = "SELECT name, declared FROM turno.job_types WHERE name = ANY(%(types)s::text[]) AND declared IS NOT NULL"
SEEN = "INSERT INTO turno.job_types (name) VALUES (%(type)s::text) ON CONFLICT (name) DO NOTHING"
LOCK = "SELECT limits_by, declared FROM turno.job_types WHERE name = %(type)s::text FOR NO KEY UPDATE"
DECLARE = "UPDATE turno.job_types SET declared = %(declared)s::jsonb WHERE name = %(type)s::text"
SET = """
UPDATE turno.job_types SET max_running = %(max_running)s::int, limits_by = %(actor)s::text WHERE name = %(type)s::text
"""
RATE = """
SELECT allowed, "window", spent, extract(epoch FROM clock_timestamp())::float8 FROM turno.rates
WHERE type = %(type)s::text FOR NO KEY UPDATE
"""
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
SET_RATE = """
INSERT INTO turno.rates (type, allowed, "window", spent)
VALUES (%(type)s::text, %(allowed)s::int, %(window)s::float8, %(spent)s::jsonb)
ON CONFLICT (type) DO UPDATE SET allowed = EXCLUDED.allowed, "window" = EXCLUDED."window", spent = EXCLUDED.spent
"""
NO_RATE = "DELETE FROM turno.rates WHERE type = %(type)s::text"
# Those that run already count from now on, be they more than are allowed. Their rows are locked: one that is just
# ending is waited for, and has ended then; one that ends after this finds its slot (finish.LEFT_BEHIND). Locked twice,
# since who has started with an end that was waited for is seen by a statement after that. The claims of this moment may
# escape it: the sweep counts them. COALESCE: found among the few that run, and not among all that there ever were of
# the type.
LOCK_RUNNING = """
SELECT id FROM turno.jobs WHERE state = 'Processing' AND COALESCE(type, '') = %(type)s::text
ORDER BY id FOR NO KEY UPDATE
"""
SEAT_RUNNING = """
WITH running AS MATERIALIZED (
    SELECT id, dispatch_id FROM turno.jobs AS r
    WHERE state = 'Processing' AND COALESCE(type, '') = %(type)s::text
      AND NOT EXISTS (SELECT FROM turno.concurrency_slots AS s WHERE s.job_id = r.id AND s.key_id = %(key)s::bigint)
    ORDER BY id FOR NO KEY UPDATE OF r
)
INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id)
SELECT %(key)s::bigint, free.number, j.id, j.dispatch_id
FROM (SELECT id, dispatch_id, row_number() OVER (ORDER BY id) AS place FROM running) AS j
JOIN (
    SELECT number, row_number() OVER (ORDER BY number) AS place FROM generate_series(1, 30000) AS n(number)
    WHERE NOT EXISTS (SELECT FROM turno.concurrency_slots AS s WHERE s.key_id = %(key)s::bigint AND s.slot = n.number)
) AS free USING (place)
RETURNING job_id
"""


UNSEATED = f"""
SELECT DISTINCT j.type FROM turno.jobs AS j
WHERE j.state = 'Processing' AND COALESCE(j.type, '') = ANY (ARRAY({keys.LIMITED})) AND NOT EXISTS (
    SELECT FROM turno.concurrency_slots AS s JOIN turno.concurrency_keys AS k ON k.id = s.key_id
    WHERE s.job_id = j.id AND k.kind = 'type' AND k.value = j.type
)
ORDER BY j.type
"""


def declare_limits(declared: Mapping[str, Limits], *, using: str = "default") -> list[str]:
    """What the handlers and the configuration of a worker say of its types; it holds where no person has changed it.

    Returns the types for which that is news.
    """

    def look(cursor: CursorWrapper) -> dict[str, Any]:
        return dict(fetch(cursor, KNOWN, {"types": list(declared)}))

    known = in_transaction(using, look) if declared else {}
    news = sorted(name for name, limits in declared.items() if _stored(limits) != _plain(known.get(name)))
    for name in news:
        in_transaction(using, partial(_declare, type_=name, limits=declared[name]))
    return news


def _declare(cursor: CursorWrapper, type_: str, limits: Limits) -> None:
    changed_by, _declared = _lock(cursor, type_)
    stored = _stored(limits)
    cursor.execute(DECLARE, {"type": type_, "declared": None if stored is None else orjson.dumps(stored).decode()})
    if changed_by is None:
        _set(cursor, type_, limits, None)


def set_limits(type_: str, limits: Limits, *, actor: str, using: str = "default") -> None:
    """Change the limits of a type while it runs; they hold at once, and until `reset_limits`.

    Those that run go on, be they more than are allowed from now on.
    """

    def work(cursor: CursorWrapper) -> None:
        _lock(cursor, type_)
        _set(cursor, type_, limits, actor)

    in_transaction(using, work)


def reset_limits(type_: str, *, using: str = "default") -> Limits:
    """Let the limits that workers declare hold again; returns them."""

    def work(cursor: CursorWrapper) -> Limits:
        limits = _read(_lock(cursor, type_)[1])
        _set(cursor, type_, limits, None)
        return limits

    return in_transaction(using, work)


def seat_running(*, using: str = "default") -> int:
    """Count, from now on, those that run without the slot that the limit of their type demands: they were claimed while
    it was being set. Returns how many."""

    def work(cursor: CursorWrapper, type_: str) -> int:
        key = keys.lock(cursor, [(keys.TYPE, type_)])[keys.TYPE, type_]
        return _seat(cursor, key, type_)

    types: list[str] = in_transaction(using, lambda cursor: [type_ for (type_,) in fetch(cursor, UNSEATED, {})])
    return sum(in_transaction(using, partial(work, type_=type_)) for type_ in types)


def _lock(cursor: CursorWrapper, type_: str) -> tuple[str | None, Any]:
    """The key of the type first, then its row: the order of all who lock gates."""
    keys.lock(cursor, [(keys.TYPE, type_)])
    cursor.execute(SEEN, {"type": type_})
    row = fetch(cursor, LOCK, {"type": type_})[0]
    return row[0], _plain(row[1])


def _set(cursor: CursorWrapper, type_: str, limits: Limits, actor: str | None) -> None:
    key = keys.lock(cursor, [(keys.TYPE, type_)])[keys.TYPE, type_]
    _set_rate(cursor, type_, limits.rate)
    cursor.execute(SET, {"type": type_, "max_running": limits.max_running, "actor": actor})
    if limits.max_running is not None:
        _seat(cursor, key, type_)
    notify(cursor, GATES, [f"type:{type_}"])


def _seat(cursor: CursorWrapper, key: int, type_: str) -> int:
    """Give those that run of the type, whose key is locked here, a slot of it; how many had none."""
    cursor.execute(LOCK_RUNNING, {"type": type_})
    return len(fetch(cursor, SEAT_RUNNING, {"key": key, "type": type_}))


def _set_rate(cursor: CursorWrapper, type_: str, rate: RateLimit | None) -> None:
    """What has started lately counts for a new rate too."""
    before = fetch(cursor, RATE, {"type": type_})
    if rate is None:
        cursor.execute(NO_RATE, {"type": type_})
        return
    now: float = fetch(cursor, NOW, {})[0][0]
    spent: list[list[int]] = []
    if before:
        allowed, window, kept, _now = before[0]
        started = allowed - Budget(allowed, window, kept, now).left
        spent = Budget(rate.allowed, rate.window, kept, now).spent if window == rate.window else []
        if not spent and started:
            spent = Budget.having(rate.window, min(started, rate.allowed), now)
    params = {"type": type_, "allowed": rate.allowed, "window": rate.window, "spent": orjson.dumps(spent).decode()}
    cursor.execute(SET_RATE, params)


def _stored(limits: Limits) -> Any:
    if limits == Limits():
        return None
    rate = limits.rate
    return {"max_running": limits.max_running, "rate": None if rate is None else [rate.allowed, rate.window]}


def _plain(stored: Any) -> Any:
    return orjson.loads(stored) if isinstance(stored, str) else stored


def _read(stored: Any) -> Limits:
    if not isinstance(stored, dict):
        return Limits()
    rate = stored.get("rate")
    return Limits(stored.get("max_running"), RateLimit(rate[0], rate[1]) if rate else None)
