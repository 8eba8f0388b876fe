"""What the API answers. Instants are ISO 8601 in UTC; durations are seconds."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field

from jobs.access import Mode
from jobs.api.schemas_waiting import ReasonOut
from jobs.states import FailureKind, Outcome, Reason, State, Waiting


class ProblemOut(BaseModel):
    """Problem Details (RFC 9457), with further members by the kind of problem."""

    model_config = ConfigDict(extra="allow")

    title: str
    status: int
    detail: str
    instance: str
    code: Annotated[str, Field(description=gettext_noop("The kind of problem, for programs."))]
    errors: Annotated[dict[str, list[str]] | None, Field(description=gettext_noop("Messages by field."))] = None


class EnqueuedOut(BaseModel):
    """A job that was enqueued, or the one that was there already."""

    id: UUID
    state: State
    duplicate: Annotated[
        bool, Field(description=gettext_noop("An active job with the same unique key was there already."))
    ]


class BatchOut(BaseModel):
    """The jobs of a batch, in the order of the request."""

    items: list[EnqueuedOut]


class ActOut(BaseModel):
    """What became of the job."""

    id: UUID
    state: State
    requested: Annotated[
        bool, Field(description=gettext_noop("The job is running: its worker was asked to stop and has yet to do it."))
    ]


class WorkerLabel(BaseModel):
    """The worker of an execution, as it was then."""

    id: UUID | None = None
    name: str | None = None
    host: str | None = None
    pid: int | None = None
    version: str | None = None


class JobOut(BaseModel):
    """A job, as lists show it."""

    id: UUID
    type: str
    queue: str
    state: State
    priority: int
    progress: int
    stage: str
    executions: int
    attempts_used: int
    max_attempts: int
    waiting_for: Waiting | None
    gate: str | None
    run_at: datetime | None
    created_at: datetime
    enqueued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    failure_kind: FailureKind | None
    error_type: str | None
    error_message: str | None
    unique_key: str | None
    origin: str | None
    tags: list[str]
    worker: WorkerLabel | None
    cancel_requested_at: datetime | None


class AttemptOut(BaseModel):
    """One execution that has ended."""

    ordinal: int
    attempt: int
    tries: int
    counted: bool
    outcome: Outcome
    worker: WorkerLabel | None
    slot: int | None
    started_at: datetime
    ended_at: datetime
    duration: float | None
    error_type: str | None
    error_message: str | None
    stack: str | None
    exit_code: int | None
    signal: int | None
    peak_memory: int | None
    discarded_at: datetime | None


class ChangeOut(BaseModel):
    """One step of the time line."""

    at: datetime
    from_state: State | None
    to_state: State
    reason: Reason
    detail: str | None
    execution: int | None
    worker_id: UUID | None
    actor: str | None


class JobDetailOut(JobOut):
    """A job with everything that is known of it, except its log."""

    payload: Any
    result: Any
    timeout: float | None
    at_most_once: bool
    lost_count: int
    not_before: datetime | None
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    slot: int | None
    concurrency_key: str | None
    concurrency_limit: int | None
    idempotency_key: str | None
    owner: str | None
    recurring_job_id: UUID | None
    fired_for: datetime | None
    rerun_of: UUID | None
    cancel_requested_by: str | None
    cancel_reason: str | None
    queue_served: Annotated[
        bool | None, Field(description=gettext_noop("A live worker serves its queue; null once the job has ended."))
    ]
    type_served: Annotated[
        bool | None,
        Field(description=gettext_noop("A live worker of its queue has its type loaded; null once the job has ended.")),
    ]
    fails_in: Annotated[
        float | None,
        Field(
            description=gettext_noop("Seconds until it ends Failed because no live worker of its queue has its type.")
        ),
    ]
    waiting: Annotated[
        list[ReasonOut],
        Field(description=gettext_noop("Why it does not run yet, the strongest reason first; empty once it runs.")),
    ]
    attempts: list[AttemptOut]
    timeline: list[ChangeOut]


class PageOut(BaseModel):
    """A page of jobs; next_cursor is null at the end."""

    items: list[JobOut]
    next_cursor: str | None
    page: int | None
    page_size: int


class LogLineOut(BaseModel):
    """A line that a handler wrote."""

    execution: int
    number: int
    level: str
    message: str
    at: datetime


class LogsOut(BaseModel):
    """Lines of a log; ask with after=next_after for the following ones, null at the end."""

    items: list[LogLineOut]
    next_after: int | None


class WorkerOut(BaseModel):
    """A worker process; state is Online, Draining, Silent or Offline, by the database's clock."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    name: str
    state: str
    host: str
    pid: int
    version: str
    queues: dict[str, int]
    slots: int
    busy: int
    types: list[str]
    started_at: datetime
    seen_at: datetime
    seen_ago: Annotated[float, Field(description=gettext_noop("Seconds since its last sign of life."))]
    stopped_at: datetime | None
    problems: list[Any]


class WorkersOut(BaseModel):
    """The workers, live ones first."""

    items: list[WorkerOut]


class InfoOut(BaseModel):
    """What answers here, and how one is let in."""

    name: str
    version: str
    access: Annotated[
        Mode, Field(description=gettext_noop("key: send the key; open: none is needed; closed: configure one."))
    ]
    key_required: bool


class LiveOut(BaseModel):
    """The process is alive."""

    status: str


class ProbeOut(BaseModel):
    """What one probe found; since is when this process first saw it so."""

    name: str
    ok: bool
    needed: Annotated[
        bool,
        Field(description=gettext_noop("Without it nothing is answered; without the others the status is degraded.")),
    ]
    detail: str
    since: datetime
    latency: float | None


class ReadyOut(LiveOut):
    """What requests depend on answers; status is ready, or degraded while something else does not."""

    probes: list[ProbeOut]
    broken_modules: list[str]
