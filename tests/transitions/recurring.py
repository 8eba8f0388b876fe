"""Recurring jobs of tests by plain SQL, in any state, past the operations; and what they have fired."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.db import connections

from jobs.schedules import fire_due
from tests.transitions.rows import Sql, ago, select

TYPE = "test.any"
EVERY_MINUTE = "* * * * *"
COLUMNS = """id, name, type, queue, priority, cron, timezone, enabled, overlap, misfire, source, error, version, owner,
    next_run_at, last_run_at, last_job_id, skipped, last_skipped_at, last_skipped_why, disabled_by, updated_at"""


def half_a_year_away(hour: int = 0) -> str:
    """A schedule of one instant a year, months before and after now: nothing of it becomes due while a test runs."""
    return f"0 {hour} 1 {(datetime.now(UTC).month + 5) % 12 + 1} *"


def half_a_day_away() -> int:
    """The hour of UTC that is furthest from now: a daily schedule within it is not due while a test runs."""
    return (datetime.now(UTC).hour + 12) % 24


def make_recurring(*, using: str = "default", **columns: Any) -> UUID:
    """Insert one that is due since a second ago and not soon again; `columns` override (values, or `Sql`). Its id."""
    row: dict[str, Any] = {"id": uuid4(), "name": f"r-{uuid4().hex[:12]}", "type": TYPE, "payload": {}}
    row |= {"cron": half_a_year_away(), "timezone": "UTC", "next_run_at": ago(1)} | columns
    if not isinstance(row["payload"], Sql):
        row["payload"] = Sql(f"'{orjson.dumps(row['payload']).decode()}'::jsonb")
    values = [str(v) if isinstance(v, Sql) else "%s" for v in row.values()]
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO turno.recurring_jobs ({', '.join(row)}) VALUES ({', '.join(values)})",
            [v for v in row.values() if not isinstance(v, Sql)],
        )
    return row["id"]


def make_many(count: int, **columns: str) -> None:
    """Insert `count` that are due like that by one statement; `columns` are SQL in which `n` counts."""
    row = {"id": "gen_random_uuid()", "name": "'many-' || n", "type": f"'{TYPE}'", "payload": "'{}'"}
    row |= {"cron": f"'{half_a_year_away()}'", "next_run_at": "now() - interval '1 second'"} | columns
    with connections["default"].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO turno.recurring_jobs ({', '.join(row)}) SELECT {', '.join(row.values())} "
            "FROM generate_series(1, %s) AS n",
            [count],
        )


def recurring(id_: UUID) -> dict[str, Any]:
    """The row but its payload, which may be none that Python reads."""
    [row] = select(f"SELECT {COLUMNS} FROM turno.recurring_jobs WHERE id = %s", id_)
    return row


def jobs_of(id_: UUID) -> list[dict[str, Any]]:
    """The jobs that it has made, in the order of their instants."""
    return select("SELECT * FROM turno.jobs WHERE recurring_job_id = %s ORDER BY fired_for", id_)


def instants(id_: UUID) -> list[datetime]:
    """The instants that it has fired."""
    return [row["fired_for"] for row in jobs_of(id_)]


def fire_all(**how: Any) -> int:
    """Fire until nothing is due; how many rows there were."""
    count = 0
    while found := fire_due(**how):
        count += found
    return count


def minutes(start: datetime, count: int) -> list[datetime]:
    """So many whole minutes from `start` on."""
    return [start + timedelta(minutes=n) for n in range(count)]
