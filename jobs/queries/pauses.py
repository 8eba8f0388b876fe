"""What is paused now: queues, types, tags and keys, with who did it and why."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connections

SHOWN = 500
# One that has run out is none, whether or not its row has been cleaned away.
PAUSES = """
SELECT scope, value, reason, paused_by, created_at, extract(epoch FROM now() - created_at)::float8, until,
    extract(epoch FROM until - now())::float8
FROM turno.pauses WHERE until IS NULL OR until > now()
ORDER BY created_at, id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class PauseRow:
    """Something that is paused. `scope`: queue, type, tag or key; `since_for` and `until_in` in seconds.

    `until` and `until_in` are None where somebody has to resume it; `who` is None where nobody is known.
    """

    scope: str
    value: str
    reason: str
    who: str | None
    since: datetime
    since_for: float
    until: datetime | None
    until_in: float | None


def pauses() -> list[PauseRow]:
    """The pauses in force, oldest first; at most 500."""
    with connections["default"].cursor() as cursor:
        cursor.execute(PAUSES, {"limit": SHOWN})
        return [PauseRow(*row) for row in cursor.fetchall()]
