"""Recurring jobs: two leaders, one of them frozen or killed between two statements, and a person who edits."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connections

from jobs import schedules, transitions
from jobs.schedules.firing import _Work, conf
from jobs.transitions import Firing
from tests.jobs.enqueue_types import registered
from tests.laws.guards import keep
from tests.transitions.recurring import instants, jobs_of, make_recurring
from tests.transitions.rows import execute, select

ENGINE = "engine"


class _Dead(Exception):
    """The leader was killed."""


def _read() -> list[Firing]:
    work = _Work(conf(), ENGINE)
    return [work.firing(due) for due in transitions.due(limit=9, using=ENGINE)]


def _write(firings: list[Firing]) -> None:
    transitions.fire(firings, fresh=60.0, using=ENGINE)


def _due() -> UUID:
    execute("DELETE FROM turno.recurring_jobs")
    return make_recurring(overlap="allow")


def frozen_leader() -> None:
    """A leader has read, and is frozen; another one fires; the first one goes on."""
    with registered():
        id_ = _due()
        frozen = _read()
        schedules.fire_due(using=ENGINE)
        _write(frozen)
        found = instants(id_)
        execute("DELETE FROM turno.recurring_jobs")
    keep(len(found) == len(set(found)) == 1, "an instant was fired twice")


def killed_leader() -> None:
    """A leader dies when the row has its next instant, and before its job is there; another one goes on."""
    with registered():
        id_ = _due()
        firings = _read()

        def dies(execute_: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if "INSERT INTO turno.jobs" in sql:
                raise _Dead
            return execute_(sql, params, many, context)

        with connections[ENGINE].execute_wrapper(dies), suppress(_Dead):
            _write(firings)
        schedules.fire_due(using=ENGINE)
        found = instants(id_)
        execute("DELETE FROM turno.recurring_jobs")
    keep(len(found) == 1, "an instant was never fired")


def edited_meanwhile() -> None:
    """A leader has read; somebody gives it another payload; the leader goes on."""
    with registered():
        id_ = _due()
        frozen = _read()
        execute("UPDATE turno.recurring_jobs SET payload = '{\"new\": 1}', version = version + 1")
        _write(frozen)
        schedules.fire_due(using=ENGINE)
        found = [job["payload"] for job in jobs_of(id_)]
        execute("DELETE FROM turno.recurring_jobs")
    keep(found == [{"new": 1}], "an instant was fired with what had been edited away")


def disabled_meanwhile() -> None:
    """A leader has read; somebody disables it; the leader goes on."""
    with registered():
        id_ = _due()
        frozen = _read()
        execute("UPDATE turno.recurring_jobs SET enabled = false, version = version + 1")
        _write(frozen)
        found = instants(id_)
        execute("DELETE FROM turno.recurring_jobs")
    keep(not found, "an instant was fired after its schedule was disabled")


def set_back_by_a_save() -> None:
    """An instant has been fired, and a save sets the next one back to it."""
    with registered():
        id_ = _due()
        execute("UPDATE turno.recurring_jobs SET next_run_at = date_trunc('minute', now()) - interval '1 minute'")
        before = "UPDATE turno.recurring_jobs SET version = version + 1, next_run_at = %s"
        schedules.fire_due(using=ENGINE)
        [instant] = instants(id_)
        execute(before, instant)
        with suppress(DatabaseError):
            schedules.fire_due(using=ENGINE)
        [row] = select("SELECT next_run_at > %s AND error IS NULL AS goes_on FROM turno.recurring_jobs", instant)
        execute("DELETE FROM turno.recurring_jobs")
    keep(row["goes_on"], "an instant is refused again and again, and the next is never fired")
