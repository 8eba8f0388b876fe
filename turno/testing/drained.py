"""What a drain did: its runs, by what became of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.context import LogLevel
from jobs.states import Outcome, State
from turno.testing.handed import Handler, declared_type

NAMED = 5


@dataclass(frozen=True)
class DrainedRun:
    """One execution: `at` is its instant by the test's clock, `state` the job's after it (None: of a job that was taken
    from it meanwhile), `result` what was stored, `error` what the handler raised, `delay` the seconds until it runs
    again."""

    job_id: UUID
    type: str
    queue: str
    payload: Any
    attempt: int
    execution: int
    at: datetime
    outcome: Outcome
    state: State | None
    result: Any = None
    error: BaseException | None = None
    delay: float | None = None
    progress: int = 0
    stages: list[str] = field(default_factory=list)
    logs: list[tuple[LogLevel, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        became = f"{self.outcome}, now {self.state or 'gone'}"
        error = f": {type(self.error).__name__}: {self.error}" if self.error is not None else ""
        return f"{self.type} attempt {self.attempt}: {became}{error}"


@dataclass(frozen=True)
class Drained:
    """The runs of a drain, in order; false when nothing ran."""

    runs: list[DrainedRun] = field(default_factory=list)

    def of(self, type: Handler) -> "Drained":
        """The runs of one type alone. Raises UnknownType, or TypeError for what is no handler."""
        name = declared_type(type).name
        return Drained([run for run in self.runs if run.type == name])

    @property
    def results(self) -> list[Any]:
        """The results of those that succeeded, in order."""
        return [run.result for run in self.succeeded]

    @property
    def succeeded(self) -> list[DrainedRun]:
        """The job is done."""
        return self._ended(State.SUCCEEDED)

    @property
    def failed(self) -> list[DrainedRun]:
        """The job ended Failed and left a dead letter: its last attempt, or an error that is permanent."""
        return self._ended(State.FAILED)

    @property
    def cancelled(self) -> list[DrainedRun]:
        """Somebody cancelled the job while it ran."""
        return self._ended(State.CANCELLED)

    @property
    def retried(self) -> list[DrainedRun]:
        """The attempt failed, and another follows after `delay` seconds."""
        return [run for run in self._ended(State.SCHEDULED) if run.outcome is not Outcome.SNOOZED]

    @property
    def snoozed(self) -> list[DrainedRun]:
        """The handler asked to run again after `delay` seconds; no attempt was counted."""
        return [run for run in self._ended(State.SCHEDULED) if run.outcome is Outcome.SNOOZED]

    @property
    def discarded(self) -> list[DrainedRun]:
        """The job was taken from its run meanwhile (deleted, say), and what it did counts for nothing."""
        return [run for run in self.runs if run.state is None]

    def _ended(self, state: State) -> list[DrainedRun]:
        return [run for run in self.runs if run.state is state]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[DrainedRun]:
        return iter(self.runs)

    def __str__(self) -> str:
        return "\n".join(str(run) for run in self.runs) or "nothing ran"


class DrainLimit(AssertionError):
    """More ran in one drain than its limit: jobs that enqueue each other, or snooze, without end. `drained` has it."""

    def __init__(self, drained: Drained) -> None:
        most = Counter(f"{run.type} × {{}} ({run.outcome})" for run in drained.runs).most_common(NAMED)
        told = ", ".join(text.format(times) for text, times in most)
        super().__init__(
            f"drain() ran {len(drained)} executions, its limit, and there is more to run: {told}. Do jobs enqueue each "
            "other, or snooze, without end? Where so many are expected, give a larger limit=."
        )
        self.drained = drained
