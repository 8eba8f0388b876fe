"""`integration.sync`: walks the pages of a source and brings a local copy up to date."""

import hashlib
import json
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext, gettext_noop
from pydantic import Field, field_validator

from turno.handlers import JobContext, TransientJobError, job_type
from turno.samples.pace import Demonstration, Pace
from turno.samples.reserved import is_reserved
from turno.samples.source import Page, Record, SimulatedSource, digest, known_copy

TRIES = 3  # requests of one page before the whole attempt is given up as transient
WAIT = 0.05  # seconds before a page is asked for again, growing with each try


class SyncPayload(Demonstration):
    """Which source to synchronise."""

    source: str = Field(
        "https://api.example.com/customers",
        max_length=200,
        description=gettext_noop("The source's address, under a name reserved for examples; nothing is sent there."),
        examples=["https://api.example.com/customers"],
    )
    records: int = Field(
        200, ge=1, le=20_000, description=gettext_noop("How many records the source has."), examples=[200]
    )
    page_size: int = Field(50, ge=1, le=500, description=gettext_noop("How many records a page has."), examples=[50])
    known: float = Field(
        0.8,
        ge=0,
        le=1,
        description=gettext_noop("Which part of the records an earlier run has left here."),
        examples=[0.8],
    )
    transient_rate: float = Field(
        0,
        ge=0,
        le=1,
        description=gettext_noop(
            "The probability that the source does not answer a request; a page is asked for three times."
        ),
        examples=[0.05],
    )

    @field_validator("source")
    @classmethod
    def _reserved(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or not is_reserved(parts.hostname):
            raise ValueError(gettext("Expected an address under a reserved name such as api.example.com."))
        return value


@job_type("integration.sync", timeout="10 min")
async def synchronize(ctx: JobContext, payload: SyncPayload) -> dict[str, Any]:
    """Walks the pages of a source and brings a local copy up to date."""
    source = SimulatedSource(payload.records, payload.page_size, payload.seed, payload.transient_rate)
    copy = known_copy(payload.records, payload.seed, payload.known)
    pages = -(-payload.records // payload.page_size)
    pace = Pace(ctx, payload, steps=pages + 1)
    counts: Counter[str] = Counter(created=0, updated=0, unchanged=0, removed=0)
    seen: set[int] = set()
    changes: list[dict[str, Any]] = []
    cursor: str | None = None
    for number in range(1, pages + 1):
        await pace.astep(gettext("Page %(number)d of %(pages)d") % {"number": number, "pages": pages})
        page = await fetch(ctx, source, cursor, number)
        for record in page.records:
            change = upsert(copy, record)
            counts[change] += 1
            seen.add(int(record["id"]))
            if change != "unchanged":
                changes.append({"change": change, **record})
        cursor = page.cursor
    await pace.astep(gettext("Removing what the source no longer has"))
    for gone in sorted(set(copy) - seen):
        del copy[gone]
        counts["removed"] += 1
        changes.append({"change": "removed", "id": gone})
    write_changes(ctx, changes)
    ctx.log(gettext("Changes: %(changes)d, pages: %(pages)d") % {"changes": len(changes), "pages": pages})
    pace.done()
    return {"source": payload.source, "pages": pages, **counts, "copy": len(copy), "sha256": fingerprint(copy)}


async def fetch(ctx: JobContext, source: SimulatedSource, cursor: str | None, number: int) -> Page:
    """A page, asked for up to three times. Raises TransientJobError after the last."""
    for try_number in range(1, TRIES):
        try:
            return source.page(cursor, try_number)
        except TransientJobError as error:
            ctx.log(gettext("Page %(number)d: %(error)s") % {"number": number, "error": error}, "warning")
            await ctx.asleep(WAIT * try_number)
    return source.page(cursor, TRIES)


def upsert(copy: dict[int, str], record: Record) -> str:
    """Bring one record's digest up to date: "created", "updated" or "unchanged"."""
    key, now = int(record["id"]), digest(record)
    before = copy.get(key)
    copy[key] = now
    if before is None:
        return "created"
    return "unchanged" if before == now else "updated"


def write_changes(ctx: JobContext, changes: list[dict[str, Any]]) -> None:
    """Leave one line of JSON a change in the job's folder, if there are any."""
    if changes:
        lines = "".join(json.dumps(change, ensure_ascii=False) + "\n" for change in changes)
        (ctx.folder / "changes.jsonl").write_text(lines, encoding="utf-8")


def fingerprint(copy: dict[int, str]) -> str:
    """One SHA-256 (hex) over the whole copy."""
    return hashlib.sha256("\n".join(f"{key}:{copy[key]}" for key in sorted(copy)).encode()).hexdigest()
