"""The jobs that match as a file: streamed by keyset, a page in memory, at most MOST; the last line says if more."""

import csv
import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from dashboard.filters import Asked
from dashboard.templatetags.shown import job_state
from dashboard.views.guard import signed_in
from dashboard.views.tarefas import asked_by
from jobs import queries, wording

MOST = 100_000
STEP = 200
# One walk; a text that is rare in a large table takes several.
SECONDS = 5.0
COLUMNS = (
    "id", "type", "queue", "state", "priority", "attempts_used", "max_attempts", "created_at", "run_at", "duration",
    "error_type", "error_message", "tags", "origin", "payload",
)  # fmt: skip
# What a spreadsheet would take for the beginning of a formula: at the beginning of a cell, and where one that divides
# by semicolons (Excel in Portuguese) or tabs sees another cell begin, since quotation marks within a line hold nothing
# together for it.
FORMULA = re.compile(r"(\A(?=[\t\r\n])|(?:\A|[;\t\r\n])(?=[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]))")


def _records(asked: Asked) -> Iterator[list[dict[str, Any] | None]]:
    """The jobs as plain values, a page at a time; a None at the end when there are more than MOST."""
    after, left = None, MOST
    while True:
        walked = queries.walk(asked.filter, order=asked.order, after=after, need=STEP, seconds=SECONDS)
        payloads = queries.payloads(walked.ids)
        jobs: list[dict[str, Any] | None] = [
            {**{name: job.get(name) for name in COLUMNS}, "state": job_state(job), "payload": payloads.get(job["id"])}
            for job in queries.rows(walked.ids)
        ]
        if len(jobs) > left:
            yield [*jobs[:left], None]
            return
        left -= len(jobs)
        yield jobs
        if walked.done or walked.reach is None:
            return
        after = walked.reach


def _cell(name: str, value: Any) -> str:
    """A value as a cell that no spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if name == "payload":
        value = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, list):
        value = " ".join(value)
    elif isinstance(value, (int, float)):
        return str(value)
    return FORMULA.sub(r"\1'", str(value))


class _Line:
    """What the writer of csv writes to: it hands each line on."""

    def write(self, line: str) -> str:
        return line


def _more() -> str:
    return _("There are more: a file holds at most %(n)s jobs. Narrow the filter.") % {"n": wording.number(MOST)}


def _csv(asked: Asked, more: str) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield "\ufeff" + writer.writerow(COLUMNS)  # the mark by which spreadsheets know UTF-8
    for records in _records(asked):
        cells = ([more] if job is None else [_cell(name, job[name]) for name in COLUMNS] for job in records)
        yield "".join(writer.writerow(line) for line in cells)


def _json(asked: Asked, more: str) -> Iterator[str]:
    separator, complete = "\n", True
    yield '{"items": ['
    for records in _records(asked):
        complete = None not in records
        for job in filter(None, records):
            yield separator + json.dumps(job, default=_plain, ensure_ascii=False)
            separator = ",\n"
    yield "\n], " + json.dumps({"complete": complete, "note": "" if complete else more}, ensure_ascii=False)[1:]


async def _stepwise(lines: Iterator[str]) -> AsyncIterator[str]:
    """One piece at a time, each in the thread that has the database: nothing is gathered in memory."""

    def step() -> str | None:
        return next(lines, None)

    following = sync_to_async(step)
    while (piece := await following()) is not None:
        yield piece


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _file(request: HttpRequest, lines: Iterator[str], kind: str, name: str) -> StreamingHttpResponse:
    pieces = _stepwise(lines) if isinstance(request, ASGIRequest) else lines
    response = StreamingHttpResponse(pieces, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_safe
@signed_in
def as_csv(request: HttpRequest) -> StreamingHttpResponse:
    """The list as CSV."""
    return _file(request, _csv(asked_by(request), _more()), "text/csv", "tarefas.csv")


@require_safe
@signed_in
def as_json(request: HttpRequest) -> StreamingHttpResponse:
    """The list as JSON: items, and whether these are all."""
    return _file(request, _json(asked_by(request), _more()), "application/json", "tarefas.json")
