"""Every read that the API or a screen makes. Reads take no locks and count no table that grows without bound."""

from jobs.queries.catalogue import TypeRow, job_types
from jobs.queries.cursor import NEWEST, OLDEST, Cursor
from jobs.queries.figures import Ended, Stats, stats
from jobs.queries.fleet import BrokenModule, StuckHandler, WorkerRow, broken_modules, stuck_handlers, workers
from jobs.queries.listing import JobFilter, Page, page
from jobs.queries.onejob import Detail, LogPage, detail, logs

__all__ = [
    "NEWEST",
    "OLDEST",
    "BrokenModule",
    "Cursor",
    "Detail",
    "Ended",
    "JobFilter",
    "LogPage",
    "Page",
    "Stats",
    "StuckHandler",
    "TypeRow",
    "WorkerRow",
    "broken_modules",
    "detail",
    "job_types",
    "logs",
    "page",
    "stats",
    "stuck_handlers",
    "workers",
]
