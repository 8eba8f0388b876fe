"""The job types that the tests of enqueue know: a typed one and two that only differ in what they declare."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from jobs.registry import catalogue, job_type


class Row(BaseModel):
    number: int


class Report(BaseModel):
    rows: int = Field(10, ge=1, le=1000)
    name: str = Field("x", max_length=20)
    kind: Literal["short", "long"] = "short"
    when: datetime | None = None
    detail: Row | None = None


@contextmanager
def registered() -> Iterator[None]:
    """The types "test.report", "test.any", "test.urgent" and "test.once", known inside."""
    with catalogue.scratch():

        @job_type("test.report", isolation="thread")
        def report(ctx: Any, payload: Report) -> None:
            """Renders."""

        @job_type("test.any", isolation="thread")
        def anything(ctx: Any, payload: dict[str, Any]) -> None:
            """Takes any object."""

        @job_type("test.urgent", queue="critical", priority=7, timeout=9, max_attempts=3, isolation="thread")
        def urgent(ctx: Any, payload: dict[str, Any]) -> None:
            """Declares where it waits."""

        @job_type("test.once", at_most_once=True, isolation="thread")
        def once(ctx: Any, payload: dict[str, Any]) -> None:
            """Never repeated."""

        yield
