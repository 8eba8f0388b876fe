"""The log of a job as its page shows it: which lines, in which words, and as a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from jobs import queries
from jobs.queries.joblog import LEVELS, LogKey

LONGEST = 10
FIRST = 500
IN_PAGE = 2000
CHUNK = 1000
FILE_LINES = 20_000
WORDS: dict[str, Promise] = {
    "debug": pgettext_lazy("log", "debug"),
    "info": pgettext_lazy("log", "info"),
    "warning": pgettext_lazy("log", "warning"),
    "error": pgettext_lazy("log", "error"),
}
MARKS = {"warning": "warn", "error": "failure"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log. `opens`: it is the first one shown of its execution."""

    key: str
    execution: int
    at: datetime
    level: str
    word: str
    mark: str
    message: str
    opens: bool

    @property
    def time(self) -> str:
        """Time of day in the viewer's zone, to the millisecond."""
        local = timezone.localtime(self.at)
        return f"{local:%H:%M:%S},{local.microsecond // 1000:03}"


def lines_of(items: Sequence[dict[str, Any]], before: int | None = None) -> list[Line]:
    """Rows of the log as lines; `before` is the execution of the line that stands above them."""
    found, last = [], before
    for row in items:
        level = row["level"]
        found.append(
            Line(
                str(LogKey(row["execution"], row["number"])),
                row["execution"],
                row["at"],
                level,
                str(WORDS.get(level, level)),
                MARKS.get(level, ""),
                row["message"],
                last is not None and row["execution"] != last,
            )
        )
        last = row["execution"]
    return found


def execution_asked(request: HttpRequest) -> int | None:
    """The execution that the address names (`tentativa`); None for none, and for what is no number of one."""
    text = request.GET.get("tentativa", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < LONGEST else None


def shown_log(id_: UUID, executions: int, chosen: int | None, level: str) -> dict[str, Any]:
    """The end of the log of one execution: the chosen one, else the last one."""
    execution = chosen if chosen is not None else max(1, executions)
    level = level if level in LEVELS else ""
    found = queries.log_lines(id_, execution=execution, levels=LEVELS[level], limit=FIRST)
    return {
        "log": lines_of(found.items),
        "log_more": found.more,
        "log_execution": execution,
        "log_size": queries.log_size(id_, execution),
        "log_level": level,
        "log_follows": chosen is None,
        "log_last": str(LogKey(found.items[-1]["execution"], found.items[-1]["number"]))
        if found.items
        else str(LogKey(execution, 0)),
        "in_page": IN_PAGE,
    }


def as_text(id_: UUID, execution: int | None) -> str:
    """The log as a file: an instant in UTC, the level and the message a line; at most FILE_LINES lines."""
    rows: list[str] = []
    after = LogKey(0, 0)
    while len(rows) < FILE_LINES:
        found = queries.log_lines(id_, execution=execution, after=after, limit=CHUNK)
        for row in found.items:
            at = row["at"].astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            rows.append(f"{at} {row['execution']} {row['level']:7} {row['message']}")
        if not found.more:
            break
        after = LogKey(found.items[-1]["execution"], found.items[-1]["number"])
    else:
        rows.append(_("(cut here: the API has the rest)"))
    return "\n".join([*rows, ""])
