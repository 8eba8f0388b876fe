"""The rows of runs: begun, held by one thread, moved on with each batch, ended. The clock is the database's.

Whoever works on a run is its `holder`. A holder that has not given a sign of life for 10 seconds has lost it to
whoever takes it over; what it still has under way is then rolled back, because `save` finds another holder.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connections
from django.db.backends.utils import CursorWrapper

from jobs.bulk.acts import Act, Target
from jobs.models.bulk import ENDED

SILENT = 10  # seconds without a sign of life after which a holder has lost its run
# For a run that is under way: nobody works on it (any more).
FREE = f"(beat_at IS NULL OR beat_at < clock_timestamp() - interval '{SILENT} seconds')"
COLUMNS = f"""id, act, target, ids IS NOT NULL, filter, before, actor, reason, total, estimated, done, applied,
    requested, skipped, cursor, state, error, created_at, finished_at, holder,
    state IN ('running', 'stopping') AND {FREE}"""
INSERT = """
INSERT INTO turno.bulk_runs (id, act, target, ids, filter, before, actor, reason, total, estimated)
VALUES (%(id)s, %(act)s, %(target)s, %(ids)s::uuid[], %(filter)s::jsonb, COALESCE(%(before)s::timestamptz, now()),
    %(actor)s, %(reason)s, %(total)s, %(estimated)s)
ON CONFLICT (id) DO NOTHING
"""
GET = f"SELECT {COLUMNS} FROM turno.bulk_runs WHERE id = %(id)s"
ACTIVE = f"""
SELECT {COLUMNS} FROM turno.bulk_runs WHERE state IN ('running', 'stopping') ORDER BY id DESC LIMIT %(limit)s
"""
# A row that somebody has locked is being taken, or stopped, at this moment.
TAKE = f"""
UPDATE turno.bulk_runs SET holder = %(holder)s, beat_at = clock_timestamp() WHERE id = (
    SELECT id FROM turno.bulk_runs
    WHERE state IN ('running', 'stopping') AND {FREE}
    ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
) RETURNING {COLUMNS}
"""
BEAT = f"""
UPDATE turno.bulk_runs SET beat_at = clock_timestamp()
WHERE id = %(id)s AND holder = %(holder)s AND state IN ('running', 'stopping') RETURNING {COLUMNS}
"""
SAVE = """
UPDATE turno.bulk_runs
SET cursor = %(cursor)s, done = %(done)s, applied = %(applied)s, requested = %(requested)s,
    skipped = %(skipped)s::jsonb, beat_at = clock_timestamp()
WHERE id = %(id)s AND holder = %(holder)s AND state IN ('running', 'stopping')
RETURNING state
"""
END = """
UPDATE turno.bulk_runs
SET state = %(state)s, error = %(error)s, holder = NULL, finished_at = clock_timestamp(), beat_at = clock_timestamp()
WHERE id = %(id)s AND holder = %(holder)s AND state IN ('running', 'stopping')
"""
# One that nobody works on is stopped at once.
STOP = f"""
UPDATE turno.bulk_runs
SET state = CASE WHEN free THEN 'stopped' ELSE 'stopping' END,
    holder = CASE WHEN free THEN NULL ELSE holder END,
    finished_at = CASE WHEN free THEN clock_timestamp() END
FROM (
    SELECT id AS chosen, {FREE} AS free
    FROM turno.bulk_runs WHERE id = %(id)s FOR NO KEY UPDATE
) AS found
WHERE id = chosen AND state IN ('running', 'stopping')
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A bulk act as it stands. `skipped` counts by reason: not_found, state, unique_key, gate, resolved, busy.

    `requested` is the part of `applied` that is asked for and not yet done (a running job's cancel). `waiting`: nobody
    works on it at the moment. `total` is None where nobody counted, and `estimated` when it comes from statistics.
    """

    id: UUID
    act: Act
    target: Target
    by_ids: bool
    filter: dict[str, Any] | None
    before: datetime
    actor: str | None
    reason: str | None
    total: int | None
    estimated: bool
    done: int
    applied: int
    requested: int
    skipped: dict[str, int] = field(hash=False)
    cursor: UUID | None
    state: str
    error: str | None
    created_at: datetime
    finished_at: datetime | None
    holder: UUID | None
    waiting: bool

    @property
    def ended(self) -> bool:
        """Nothing more will be done."""
        return self.state in ENDED


def _json(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, (str, bytes)) else value


def _run(row: tuple[Any, ...]) -> Run:
    made = list(row)
    made[1], made[2], made[4], made[13] = Act(row[1]), Target(row[2]), _json(row[4]), _json(row[13])
    return Run(*made)


def _rows(sql: str, params: dict[str, Any]) -> list[Run]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, params)
        return [_run(row) for row in cursor.fetchall()]


def insert(values: dict[str, Any]) -> None:
    """A new run; one with the same id stays as it is."""
    with connections["default"].cursor() as cursor:
        cursor.execute(INSERT, values)


def get(id_: UUID) -> Run | None:
    """The run, or None."""
    return next(iter(_rows(GET, {"id": id_})), None)


def active(limit: int) -> list[Run]:
    """Runs that have not ended, newest first."""
    return _rows(ACTIVE, {"limit": limit})


def take(holder: UUID) -> Run | None:
    """Become the holder of the oldest run that nobody works on; None when there is none."""
    return next(iter(_rows(TAKE, {"holder": holder})), None)


def beat(id_: UUID, holder: UUID) -> Run | None:
    """A sign of life: the run as it stands, None when it is not this holder's any more."""
    return next(iter(_rows(BEAT, {"id": id_, "holder": holder})), None)


def save(cursor: CursorWrapper, run: Run) -> str | None:
    """Write cursor and counters within the batch's transaction: the state that it has now, None when it was lost."""
    names = ("id", "holder", "cursor", "done", "applied", "requested")
    params: dict[str, Any] = {name: getattr(run, name) for name in names}
    params["skipped"] = orjson.dumps(run.skipped).decode()
    cursor.execute(SAVE, params)
    row = cursor.fetchone()
    return row[0] if row else None


def end(run: Run, state: str, error: str | None = None) -> None:
    """The end of a run that this holder still has; else nothing."""
    with connections["default"].cursor() as cursor:
        cursor.execute(END, {"id": run.id, "holder": run.holder, "state": state, "error": error})


def stop(id_: UUID) -> None:
    """Ask for its stop; at once when nobody works on it. One that has ended stays as it is."""
    with connections["default"].cursor() as cursor:
        cursor.execute(STOP, {"id": id_})
