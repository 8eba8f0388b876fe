"""Retention of what is no job, each in small batches that pass over what somebody has locked."""

from jobs.upkeep.folding import fold_hours, fold_workers
from jobs.upkeep.rows import count, forget_admin_log, forget_bulk, forget_metrics, forget_sessions

__all__ = [
    "count",
    "fold_hours",
    "fold_workers",
    "forget_admin_log",
    "forget_bulk",
    "forget_metrics",
    "forget_sessions",
]
