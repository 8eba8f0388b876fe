"""What the tables say, for tests with real workers."""

from typing import Any
from uuid import UUID

from jobs.models import Job
from tests.kit.processes import eventually


def job(id_: UUID) -> Job:
    """The job as it is now."""
    return Job.objects.get(pk=id_)


def wait_state(id_: UUID, state: str, seconds: float = 60.0) -> Job:
    """Wait until the job is in `state`; fails at once when it is final in another."""

    def reached() -> Job | None:
        now = job(id_)
        assert now.state == state or now.finished_at is None, f"{now.state} instead of {state}: {now.error_message}"
        return now if now.state == state else None

    return eventually(reached, f"{id_} is {state}", seconds)


def attempts(id_: UUID) -> list[tuple[Any, ...]]:
    """(ordinal, outcome, counted) of each execution."""
    return list(job(id_).attempts.order_by("ordinal").values_list("ordinal", "outcome", "counted"))


def steps(id_: UUID) -> list[tuple[str | None, str, str]]:
    """(from, to, reason) of each change of state, in order."""
    return list(job(id_).changes.order_by("id").values_list("from_state", "to_state", "reason"))


def started(fleet: Any, key: str, times: int = 1) -> list[list[str]]:
    """Wait until `key` has been started `times` times; its start lines."""
    return eventually(lambda: (s := fleet.starts(key)) and len(s) >= times and s, f"{key} started {times} times")
