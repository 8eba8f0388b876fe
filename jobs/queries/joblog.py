"""The log of a job, walked by (execution, number), which its unique index is made of: forwards, backwards, the end."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connections

MOST = 1000
LEVELS = {"": ("debug", "info", "warning", "error"), "avisos": ("warning", "error"), "erros": ("error",)}
KEY = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
COLUMNS = "execution, number, level, message, at"
OF_JOB = """
FROM turno.job_logs
WHERE job_id = %(id)s::uuid AND (%(only)s::int IS NULL OR execution = %(only)s::int) AND level = ANY(%(levels)s::text[])
"""
AFTER = f"""
SELECT {COLUMNS} {OF_JOB} AND (execution, number) > (%(execution)s, %(number)s)
ORDER BY execution, number LIMIT %(limit)s
"""
BEFORE = f"""
SELECT {COLUMNS} {OF_JOB} AND (execution, number) < (%(execution)s, %(number)s)
ORDER BY execution DESC, number DESC LIMIT %(limit)s
"""
LAST = f"SELECT {COLUMNS} {OF_JOB} ORDER BY execution DESC, number DESC LIMIT %(limit)s"
SIZE = """
SELECT COALESCE(max(number), 0) FROM turno.job_logs WHERE job_id = %(id)s::uuid AND execution = %(execution)s
"""


class LogKey(NamedTuple):
    """Where a line stands: its execution, and its number there."""

    execution: int
    number: int

    def __str__(self) -> str:
        return f"{self.execution}-{self.number}"

    @classmethod
    def parse(cls, text: str) -> "LogKey | None":
        """The key that `str()` wrote; None for anything else."""
        found = KEY.fullmatch(text)
        return cls(int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines (execution, number, level, message, at), oldest first; `more`: there are further ones that way."""

    items: list[dict[str, Any]]
    more: bool


def log_lines(
    id_: UUID,
    *,
    execution: int | None = None,
    levels: Sequence[str] = LEVELS[""],
    after: LogKey | None = None,
    before: LogKey | None = None,
    limit: int = 500,
) -> LogLines:
    """Lines of a job, of one execution or of all: those after a key, those before one, or the last ones."""
    size = min(limit, MOST)
    key = after or before
    params = {"id": id_, "only": execution, "levels": list(levels), "limit": size + 1}
    if key is not None:
        params |= {"execution": key.execution, "number": key.number}
    with connections["default"].cursor() as cursor:
        cursor.execute(AFTER if after is not None else BEFORE if before is not None else LAST, params)
        names = [column.name for column in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    items = found[:size]
    return LogLines(items if after is not None else items[::-1], len(found) > size)


def log_size(id_: UUID, execution: int) -> int:
    """How many lines an execution has written: the number of its last one."""
    with connections["default"].cursor() as cursor:
        cursor.execute(SIZE, {"id": id_, "execution": execution})
        (size,) = cursor.fetchone()
        return int(size)
