"""Recurring jobs of the screens' tests."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from jobs import schedules
from jobs.ids import new_id
from jobs.models import RecurringJob
from jobs.schedules import Wanted
from tests.transitions import rows
from tests.transitions.rows import ago

LIST = "/painel/recorrentes"
TYPE = "report.generate"
SCRIPT = {"X-Turno-Act": "1", "Accept": "application/json"}


def make(name: str = "fechamento", cron: str = "0 30 7 * * 1-5", timezone: str = "UTC", **columns: object) -> UUID:
    """A recurring job as somebody saves it; `columns` are then written past the checks."""
    made = schedules.create(Wanted(name, TYPE, cron, timezone, payload={"rows": 5}), actor="key")
    if columns:
        RecurringJob.objects.filter(id=made).update(**columns)
    return made


def run(id_: UUID, state: str = "Succeeded", *, took: float = 372.0, ended: float = 60.0) -> UUID:
    """Its last run, which ended so many seconds ago: then its length stands with its execution alone."""
    job, times = new_id(), {"fired_for": ago(took + ended)}
    final = state in {"Succeeded", "Failed", "Cancelled"}
    times |= {"finished_at": ago(ended)} if final else {"started_at": ago(took + ended)}
    rows.make_job(state, id=job, type=TYPE, recurring_job_id=id_, **times)
    if final:
        rows.execute(
            "INSERT INTO turno.job_attempts"
            " (job_id, ordinal, attempt, counted, dispatch_id, started_at, ended_at, duration, outcome)"
            " VALUES (%s, 1, 1, true, %s, now() - %s * interval '1 s', now(), %s, %s)",
            job, new_id(), took, took, state,
        )  # fmt: skip
    at = datetime.now(UTC) - timedelta(seconds=took + ended)
    RecurringJob.objects.filter(id=id_).update(last_job_id=job, last_run_at=at)
    return job


def form(name: str = "fechamento", **fields: str) -> dict[str, str]:
    """What the editor posts."""
    blank = {"name": name, "type": TYPE, "cron": "0 30 7 * * 1-5", "timezone": "UTC", "overlap": "skip"}
    return blank | {"misfire": "once", "payload": '{"rows": 5}', "queue": "", "priority": ""} | fields
