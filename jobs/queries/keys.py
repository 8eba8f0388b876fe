"""Concurrency keys and limits of types that are in use: who holds their slots, and how many wait for one.

Keys come and go by the thousand: they are paged by their text, each page by indexes, and counts stop at a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.queries.gates import Other

PAGE = 50
TYPES = 200
HOLDERS = 3
COUNTED = 1000
# The gates that have waiting jobs, one step of the index for each, however many wait there.
_WALK = """(
    (SELECT gate AS value, 1 AS place FROM turno.jobs
     WHERE waiting_for = '{waiting_for}' AND gate > %(after)s ORDER BY gate LIMIT 1)
    UNION ALL
    SELECT next.gate, w.place + 1 FROM waited AS w CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE waiting_for = '{waiting_for}' AND gate > w.value ORDER BY gate LIMIT 1
    ) AS next
    WHERE w.place < %(limit)s
)"""
KEYS = f"""
WITH RECURSIVE waited AS {_WALK.format(waiting_for="concurrency_key")}
SELECT value FROM (
    SELECT value FROM waited
    UNION
    SELECT k.value FROM turno.concurrency_slots AS s JOIN turno.concurrency_keys AS k ON k.id = s.key_id
    WHERE k.kind = 'key' AND k.value > %(after)s
) AS used ORDER BY value LIMIT %(limit)s
"""
LIMITED = f"""
WITH RECURSIVE waited AS {_WALK.format(waiting_for="type_limit")}
SELECT value FROM (
    SELECT value FROM waited
    UNION
    SELECT name FROM turno.job_types WHERE max_running IS NOT NULL
) AS used ORDER BY value LIMIT %(limit)s
"""
# A key's limit comes with each of its jobs: that of the newest one is shown.
ROWS = """
SELECT n.kind, n.value, held.taken, first.holders, CASE n.kind WHEN 'key' THEN (
        SELECT concurrency_limit FROM turno.jobs WHERE concurrency_key = n.value ORDER BY id DESC LIMIT 1
    ) ELSE (SELECT max_running FROM turno.job_types WHERE name = n.value) END,
    waits.jobs
FROM unnest(%(kinds)s::text[], %(values)s::text[]) WITH ORDINALITY AS n(kind, value, place)
LEFT JOIN LATERAL (
    SELECT id FROM turno.concurrency_keys WHERE kind = n.kind AND value = n.value LIMIT 1
) AS k ON true
CROSS JOIN LATERAL (SELECT count(*) AS taken FROM turno.concurrency_slots WHERE key_id = k.id) AS held
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(id, type, state, age, worker)) AS holders FROM (
        SELECT j.id, j.type, j.state, GREATEST(0, extract(epoch FROM now() - s.taken_at)) AS age,
            j.worker_label->>'name' AS worker
        FROM turno.concurrency_slots AS s JOIN turno.jobs AS j ON j.id = s.job_id
        WHERE s.key_id = k.id ORDER BY s.taken_at, s.slot LIMIT %(holders)s
    ) AS h
) AS first
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
        (SELECT FROM turno.jobs
         WHERE waiting_for = 'concurrency_key' AND gate = n.value AND n.kind = 'key' LIMIT %(most)s)
        UNION ALL
        (SELECT FROM turno.jobs
         WHERE waiting_for = 'type_limit' AND gate = n.value AND n.kind = 'type' LIMIT %(most)s)
    ) AS x
) AS waits
ORDER BY n.place
"""
PAUSED = """
SELECT n.gate, count(x.one)
FROM unnest(%(gates)s::text[]) AS n(gate)
LEFT JOIN LATERAL (
    SELECT 1 AS one FROM turno.jobs WHERE waiting_for = 'pause' AND gate = n.gate LIMIT %(most)s
) AS x ON true
GROUP BY n.gate
"""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key (`kind` key) or a type with a limit (type). `taken` of `limit` slots (None: not known) are in use or kept
    for jobs that are about to start; `holders`: the first few of those jobs; `waiting` jobs are parked for it, counted
    up to 1,000 (`at_least`: there are more)."""

    kind: str
    value: str
    taken: int
    limit: int | None
    holders: tuple[Other, ...]
    waiting: int
    at_least: bool

    @property
    def more(self) -> int:
        """How many holders are not named."""
        return max(0, self.taken - len(self.holders))

    @property
    def since_for(self) -> float | None:
        """Seconds that the first of the holders has had its slot; None without any."""
        return self.holders[0].since_for if self.holders else None


@dataclass(frozen=True, slots=True)
class KeyPage:
    """The rows, types with a limit first (on the first page alone), then keys by their text; `onward`: the key after
    which the next page begins, None at the end."""

    rows: list[KeyRow]
    onward: str | None


def _column(sql: str, **params: Any) -> list[str]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return [value for (value,) in cursor.fetchall()]


def keys(after: str = "", *, size: int = PAGE) -> KeyPage:
    """The keys in use after that one, by their text; on the first page the types with a limit too (at most 200)."""
    found = _column(KEYS, after=after, limit=size + 1)
    names = [("key", value) for value in found[:size]]
    if not after:
        names = [("type", value) for value in _column(LIMITED, after="", limit=TYPES)] + names
    return KeyPage(_rows(names), found[size - 1] if len(found) > size else None)


def _rows(names: list[tuple[str, str]]) -> list[KeyRow]:
    if not names:
        return []
    kinds, values = zip(*names, strict=True)
    params = {"kinds": list(kinds), "values": list(values), "holders": HOLDERS, "most": COUNTED + 1}
    rows = []
    with connections["default"].cursor() as cursor:
        cursor.execute(ROWS, params)
        for kind, value, taken, holders, limit, waiting in cursor.fetchall():
            held = tuple(
                Other(UUID(id_), type_, state, age, worker) for id_, type_, state, age, worker in holders or ()
            )
            rows.append(KeyRow(kind, value, taken, limit, held, min(waiting, COUNTED), waiting > COUNTED))
    return rows


def paused_jobs(gates: Sequence[str]) -> dict[str, tuple[int, bool]]:
    """How many jobs are parked for each pause ("type:x", "tag:x", "key:x"), up to 1,000, and whether there are more."""
    with connections["default"].cursor() as cursor:
        cursor.execute(PAUSED, {"gates": list(gates), "most": COUNTED + 1})
        return {gate: (min(jobs, COUNTED), jobs > COUNTED) for gate, jobs in cursor.fetchall()}
