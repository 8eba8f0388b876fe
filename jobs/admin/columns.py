"""How values look in the admin: instants with their zone, ids that lead to their row, JSON that can be read."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString

SHORT = 120  # characters of a long text in a list
INDENTED_UP_TO = 16_384  # characters; a larger document would grow too much by its indentation

type Column = Callable[[Any, Any], Any]


def shown_instant(value: datetime | None) -> str | SafeString:
    """In the viewer's zone, which stands beside it, with UTC as a hint."""
    if value is None:
        return "-"
    here = timezone.localtime(value)
    utc = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc.isoformat(timespec="milliseconds"),
        f"{utc:%Y-%m-%d %H:%M:%S}Z",
        f"{here:%Y-%m-%d %H:%M:%S %Z}",
    )


def shown_json(value: Any) -> SafeString:
    """A JSON document, indented unless it is large."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= INDENTED_UP_TO:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return shown_text(text)


def shown_text(value: str) -> SafeString:
    """A text with its lines, as it was written."""
    return format_html('<pre class="code">{}</pre>', value)


def instant(field: str, description: str | Promise) -> Column:
    """A column with an instant."""

    @admin.display(description=description)
    def column(_admin: Any, row: Any) -> str | SafeString:
        return shown_instant(getattr(row, field))

    return column


def short(field: str, description: str | Promise) -> Column:
    """A column with the beginning of a text."""

    @admin.display(description=description)
    def column(_admin: Any, row: Any) -> str:
        text = getattr(row, field) or "-"
        return text if len(text) <= SHORT else text[:SHORT] + "…"

    return column


def short_id(description: str | Promise) -> Column:
    """A column with the row's id as people compare ids, by both ends; whole as a hint."""

    @admin.display(description=description)
    def column(_admin: Any, row: Any) -> SafeString:
        text = str(row.pk)
        return format_html('<span class="mono" title="{}">{}…{}</span>', text, text[:8], text[-4:])

    return column


def job_link(field: str, description: str | Promise) -> Column:
    """A column with a job's id, which leads to the job."""

    @admin.display(description=description)
    def column(_admin: Any, row: Any) -> str | SafeString:
        id_ = getattr(row, field)
        if id_ is None:
            return "-"
        text, address = str(id_), reverse("admin:jobs_job_change", args=[id_])
        return format_html('<a class="mono" title="{}" href="{}">{}…{}</a>', text, address, text[:8], text[-4:])

    return column


def labelled(field: str, description: str | Promise) -> Column:
    """A column with a value as it is, under a heading for people."""

    @admin.display(description=description)
    def column(_admin: Any, row: Any) -> Any:
        value = getattr(row, field)
        return "-" if value is None or value == "" else value

    return column
