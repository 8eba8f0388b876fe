"""What a running job says: progress, stage, log lines. Owner's writes, so each tests the fence."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import DatabaseError
from django.db.backends.utils import CursorWrapper

from jobs.outcomes import LogLine
from jobs.transitions.sql import arrays, fetch, in_transaction, refused, unnest

log = logging.getLogger(__name__)

COLUMNS = {"id": "uuid", "dispatch_id": "uuid", "progress": "int", "stage": "text"}
# The ids by themselves: see FINISH.
NOTE = f"""
WITH locked AS MATERIALIZED (
    SELECT j.id, i.progress, i.stage
    FROM {unnest("i", COLUMNS)} JOIN turno.jobs AS j ON j.id = i.id
    WHERE j.id = ANY (%(id)s::uuid[]) AND j.dispatch_id = i.dispatch_id AND j.worker_id = %(worker_id)s::uuid
      AND COALESCE(j.state, '') = 'Processing'
    ORDER BY j.id FOR NO KEY UPDATE OF j
)
UPDATE turno.jobs AS j
SET progress = GREATEST(j.progress, COALESCE(l.progress, j.progress)), stage = COALESCE(l.stage, j.stage)
FROM locked AS l WHERE j.id = l.id
RETURNING j.id, j.dispatch_id, j.executions
"""
LOG_COLUMNS = {
    "job_id": "uuid",
    "execution": "int",
    "number": "int",
    "level": "text",
    "message": "text",
    "age": "float8",
}
LOGS = f"""
INSERT INTO turno.job_logs (job_id, execution, number, level, message, at)
SELECT job_id, execution, number, level, message, now() - age * interval '1 second'
FROM {unnest("i", LOG_COLUMNS)}
ON CONFLICT (job_id, execution, number) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Note:
    """The newest progress (0-100), stage and unwritten log lines of one execution; None leaves what is stored."""

    id: UUID
    dispatch_id: UUID
    progress: int | None = None
    stage: str | None = None
    logs: tuple[LogLine, ...] = ()

    def followed_by(self, later: "Note") -> "Note":
        """One note in place of this one and a later one of the same execution."""
        progress = self.progress if later.progress is None else later.progress
        stage = self.stage if later.stage is None else later.stage
        return replace(later, progress=progress, stage=stage, logs=self.logs + later.logs)


def note(notes: Sequence[Note], *, worker_id: UUID, using: str = "default") -> set[UUID]:
    """Store what running jobs say; answers the tokens whose fence held. A lost owner writes nothing.

    A note that the database refuses is dropped, and its job's other notes and its fence are not affected by it.
    """
    if not notes:
        return set()
    try:
        return _note(notes, worker_id, using)
    except (DatabaseError, UnicodeError) as error:
        if not refused(error):
            raise
        if len(notes) > 1:
            middle = len(notes) // 2
            halves = notes[:middle], notes[middle:]
            return set().union(*(note(half, worker_id=worker_id, using=using) for half in halves))
        log.error("note_not_stored", extra={"job": str(notes[0].id), "error": str(error)[:300]})
        return _note([Note(notes[0].id, notes[0].dispatch_id)], worker_id, using)


def _note(notes: Sequence[Note], worker_id: UUID, using: str) -> set[UUID]:
    params = arrays(COLUMNS, [(n.id, n.dispatch_id, n.progress, n.stage) for n in notes]) | {"worker_id": worker_id}

    def work(cursor: CursorWrapper) -> set[UUID]:
        held = {token: execution for _, token, execution in fetch(cursor, NOTE, params)}
        write_logs(
            cursor,
            [(n.id, held[n.dispatch_id], line) for n in notes if n.dispatch_id in held for line in n.logs],
        )
        return set(held)

    return in_transaction(using, work)


def write_logs(cursor: CursorWrapper, lines: Sequence[tuple[UUID, int, LogLine]]) -> None:
    """Insert log lines (job, execution, line) of executions whose fence the caller has tested in this transaction."""
    if lines:
        rows = [(job, execution, x.number, x.level, x.message, float(x.age)) for job, execution, x in lines]
        cursor.execute(LOGS, arrays(LOG_COLUMNS, rows))
