"""What a parked job waits for: who holds its key's or type's slots, what a rate has spent, which parents still run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections

from jobs.ratelimit import PARTS
from jobs.serving import WOKEN
from jobs.states import State, Waiting

SHOWN = 10
COUNTED = 1000
# Whoever has a slot or has one kept for it; a limit that counts slots counts both.
HOLDERS = """
SELECT j.id, j.type, j.state, GREATEST(0, extract(epoch FROM now() - s.taken_at))::float8,
    j.worker_label->>'name', count(*) OVER ()
FROM turno.concurrency_keys AS k
JOIN turno.concurrency_slots AS s ON s.key_id = k.id
JOIN turno.jobs AS j ON j.id = s.job_id
WHERE k.kind = %(kind)s AND k.value = %(value)s
ORDER BY s.taken_at, s.slot LIMIT %(shown)s
"""
# In the order of waking, in two walks of the gates' index: a better priority, and the same one but earlier.
BEFORE = """
SELECT count(*) FROM (
    (SELECT FROM turno.jobs
     WHERE waiting_for = %(waiting_for)s AND gate = %(gate)s AND waiting_for IN (
         'concurrency_key', 'type_limit', 'rate', 'pause')
       AND priority > %(priority)s LIMIT %(most)s)
    UNION ALL
    (SELECT FROM turno.jobs
     WHERE waiting_for = %(waiting_for)s AND gate = %(gate)s AND waiting_for IN (
         'concurrency_key', 'type_limit', 'rate', 'pause')
       AND priority = %(priority)s AND (created_at, id) < (%(created_at)s, %(id)s::uuid) LIMIT %(most)s)
) AS before_it
"""
LIMIT = "SELECT max_running FROM turno.job_types WHERE name = %(type)s"
# As starts are counted when one is asked for: by fiftieths of a window, each until it has left the window whole.
RATES = f"""
SELECT r.type, r.allowed, r.window, COALESCE(spent.starts, 0)::int,
    CASE WHEN spent.starts >= r.allowed
         THEN GREATEST(0, (spent.first + {PARTS + 1}) * r.window / {PARTS} - extract(epoch FROM now())) END::float8,
    waits.jobs, (SELECT count(*) FROM turno.jobs AS e WHERE {WOKEN} AND e.type = r.type)
FROM turno.rates AS r
CROSS JOIN LATERAL (
    SELECT sum((pair->>1)::numeric) AS starts, min((pair->>0)::numeric) AS first
    FROM jsonb_array_elements(CASE WHEN jsonb_typeof(r.spent) = 'array' THEN r.spent ELSE '[]'::jsonb END) AS s(pair)
    WHERE CASE WHEN jsonb_typeof(pair->0) = 'number' AND jsonb_typeof(pair->1) = 'number'
        THEN (pair->>0)::numeric >= floor(extract(epoch FROM now()) / (r.window / {PARTS})) - {PARTS} END
) AS spent
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
        SELECT FROM turno.jobs WHERE waiting_for = 'rate' AND gate = r.type LIMIT %(most)s
    ) AS x
) AS waits
WHERE %(types)s::text[] IS NULL OR r.type = ANY(%(types)s::text[]) ORDER BY r.type LIMIT %(most)s
"""
PARENTS = """
SELECT p.id, p.type, p.state, count(*) OVER ()
FROM turno.job_dependencies AS d JOIN turno.jobs AS p ON p.id = d.parent_id
WHERE d.child_id = %(id)s::uuid AND p.state NOT IN ('Succeeded', 'Failed', 'Cancelled')
ORDER BY p.id LIMIT %(shown)s
"""


@dataclass(frozen=True, slots=True)
class Other:
    """Another job that this one waits for: `since_for` (seconds) it has held its slot, None for one that holds none."""

    id: UUID
    type: str
    state: str
    since_for: float | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class RateUse:
    """How much of a type's rate is spent: `spent` of `allowed` starts in `window` seconds; `opens_in` (seconds): when
    the first of them counts no more, None while another may start now; `waiting` jobs are parked for it, counted up to
    COUNTED; `woken` are in their queues again and have not started."""

    type: str
    allowed: int
    window: float
    spent: int
    opens_in: float | None
    waiting: int = 0
    woken: int = 0

    @property
    def promised(self) -> bool:
        """Whether every start that is left is for one of those that are woken."""
        return 0 < self.allowed - self.spent <= self.woken

    @property
    def load(self) -> int:
        """How much of it is spent, in percent."""
        return min(100, 100 * self.spent // self.allowed)


@dataclass(frozen=True, slots=True)
class Gate:
    """What a parked job waits for. `others`: at most SHOWN jobs that hold its slots or are its unfinished parents,
    `taken` how many there are in all, of `limit` (None: not known any more); `before`: how many that wait for the same
    go on before it, counted up to COUNTED, None where they do not go one by one."""

    others: Sequence[Other] = ()
    taken: int = 0
    limit: int | None = None
    before: int | None = None
    rate: RateUse | None = None

    @property
    def more(self) -> int:
        """How many others are not named."""
        return max(0, self.taken - len(self.others))


def _fetch(sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def holders(kind: str, value: str) -> tuple[list[Other], int]:
    """Who holds the slots of a key (`kind` key or type), the first to take one first; and how many there are."""
    found = _fetch(HOLDERS, {"kind": kind, "value": value, "shown": SHOWN})
    return [Other(*row[:5]) for row in found], found[0][5] if found else 0


def rates(types: Sequence[str] | None = None) -> list[RateUse]:
    """What is spent of the rates of these types (None: of all, at most COUNTED), by type; those without one are left
    out."""
    return [RateUse(*row) for row in _fetch(RATES, {"types": None if types is None else list(types), "most": COUNTED})]


def _before(job: dict[str, Any]) -> int:
    place = {name: job[name] for name in ("waiting_for", "gate", "priority", "created_at", "id")}
    [(number,)] = _fetch(BEFORE, place | {"most": COUNTED + 1})
    return int(number)


def _of_queued(job: dict[str, Any]) -> Gate | None:
    """The key of a queued job, where it is full of others: then the job is parked when its turn comes."""
    if not job["concurrency_key"]:
        return None
    others, taken = holders("key", job["concurrency_key"])
    full = taken >= job["concurrency_limit"] and all(other.id != job["id"] for other in others)
    return Gate(others, taken, job["concurrency_limit"]) if full else None


def gate_of(job: dict[str, Any]) -> Gate | None:
    """What stands at the gate of a parked job (its columns), or will when a queued one is taken; None for gates that
    are told elsewhere."""
    if job["state"] == State.ENQUEUED:
        return _of_queued(job)
    waiting = job["waiting_for"]
    if waiting == Waiting.CONCURRENCY_KEY:
        others, taken = holders("key", job["gate"] or "")
        return Gate(others, taken, job["concurrency_limit"], _before(job))
    if waiting == Waiting.TYPE_LIMIT:
        others, taken = holders("type", job["gate"] or "")
        limit = _fetch(LIMIT, {"type": job["gate"]})
        return Gate(others, taken, limit[0][0] if limit else None, _before(job))
    if waiting == Waiting.RATE:
        found = rates([job["gate"] or ""])
        return Gate(before=_before(job), rate=found[0] if found else None)
    if waiting == Waiting.PARENTS:
        rows = _fetch(PARENTS, {"id": job["id"], "shown": SHOWN})
        return Gate([Other(*row[:3]) for row in rows], rows[0][3] if rows else 0)
    return None
