"""What a storm leaves: the handlers' own lines, and the tables' word about each job."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from tests.crash.storm.people import rows


class Line(NamedTuple):
    """One line of the handlers' log; lines stand in the order in which they were written."""

    word: str
    job: str
    execution: int
    pid: int
    at: float


@dataclass
class Run:
    """One execution as its own lines show it: the numbers of its first and last line, how often each word is there."""

    first: int
    last: int
    words: Counter[str] = field(default_factory=Counter)


class JobRow(NamedTuple):
    """A job as the table has it; `order` is the name of the order, `result` the execution that its
    result names, `requeues` how often a person ran it again."""

    id: str
    order: str | None
    type: str
    state: str
    executions: int
    at_most_once: bool
    key: str | None
    limit: int | None
    result: int | None
    schedule: str | None
    fired_for: datetime | None
    requeues: int


JOBS = """
SELECT j.id::text, j.origin, j.type, j.state, j.executions, j.at_most_once, j.concurrency_key, j.concurrency_limit,
    (j.result ->> 'execution')::int, r.name, j.fired_for,
    (SELECT count(*) FROM turno.job_state_changes AS c WHERE c.job_id = j.id AND c.reason = 'requeued')
FROM turno.jobs AS j LEFT JOIN turno.recurring_jobs AS r ON r.id = j.recurring_job_id ORDER BY j.id
"""


@dataclass
class Evidence:
    """All that the referee looks at. `attempts`: the outcome by job and execution; `parents`: of each child; `orders`:
    what the clients know of each; `left_over`: messages by queue; `ends`: what was wrong with the workers' ends."""

    lines: list[Line]
    jobs: dict[str, JobRow]
    attempts: dict[tuple[str, int], str] = field(default_factory=dict)
    parents: dict[str, list[str]] = field(default_factory=dict)
    orders: dict[str, str] = field(default_factory=dict)
    left_over: dict[str, int] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs: dict[tuple[str, int], Run] = {}
        for number, line in enumerate(self.lines):
            run = self.runs.setdefault((line.job, line.execution), Run(number, number))
            run.last = number
            run.words[line.word] += 1


def read(lines: Iterable[str]) -> list[Line]:
    """The lines of a log."""
    found = []
    for line in lines:
        word, job, execution, pid, at = line.split()
        found.append(Line(word, job, int(execution), int(pid), float(at)))
    return found


def gathered(lines: Iterable[str], orders: dict[str, str]) -> Evidence:
    """The log with what the tables say now."""
    jobs = {row.id: row for row in (JobRow(*found) for found in rows(JOBS))}  # type: ignore[arg-type]
    attempts = {
        (str(job), int(str(ordinal))): str(outcome)
        for job, ordinal, outcome in rows("SELECT job_id, ordinal, outcome FROM turno.job_attempts")
    }
    parents: dict[str, list[str]] = {}
    for child, parent in rows("SELECT child_id, parent_id FROM turno.job_dependencies"):
        parents.setdefault(str(child), []).append(str(parent))
    return Evidence(read(lines), jobs, attempts, parents, orders)
