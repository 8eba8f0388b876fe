"""The tables, one file a family: columns, constraints, indexes; no behaviour."""

from jobs.models.bulk import BulkRun
from jobs.models.cluster import Lease, MetricsMinute, OutboxMessage, RecurringJob, Worker
from jobs.models.flow import (
    Circuit,
    ConcurrencyKey,
    ConcurrencySlot,
    Counter,
    JobDependency,
    KnownType,
    Pause,
    Queue,
    Rate,
    UnservedType,
)
from jobs.models.history import DeadLetter, JobArtifact, JobAttempt, JobLog, JobStateChange
from jobs.models.job import Job
from jobs.models.promises import PromiseCheck, StormReport

__all__ = [
    "BulkRun",
    "Circuit",
    "ConcurrencyKey",
    "ConcurrencySlot",
    "Counter",
    "DeadLetter",
    "Job",
    "JobArtifact",
    "JobAttempt",
    "JobDependency",
    "JobLog",
    "JobStateChange",
    "KnownType",
    "Lease",
    "MetricsMinute",
    "OutboxMessage",
    "Pause",
    "PromiseCheck",
    "Queue",
    "Rate",
    "RecurringJob",
    "StormReport",
    "UnservedType",
    "Worker",
]
