"""Every read that the API or a screen makes. Reads take no locks and count no table that grows without bound."""

from jobs.queries.catalogue import TypeRow, job_types
from jobs.queries.cursor import NEWEST, OLDEST, Cursor
from jobs.queries.figures import Ended, Stats, stats
from jobs.queries.fleet import WorkerRow, workers
from jobs.queries.listing import JobFilter, Page, page
from jobs.queries.onejob import Detail, LogPage, detail, logs

__all__ = [
    "NEWEST",
    "OLDEST",
    "Cursor",
    "Detail",
    "Ended",
    "JobFilter",
    "LogPage",
    "Page",
    "Stats",
    "TypeRow",
    "WorkerRow",
    "detail",
    "job_types",
    "logs",
    "page",
    "stats",
    "workers",
]
